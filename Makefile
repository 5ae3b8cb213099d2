# Everything that is built goes to bin/, every run to results/runs/; git sees neither.
.POSIX:

GO = go
# make perf takes five minutes, PERF=full twelve: more rounds are calmer.
PERF = quick

.PHONY: help build bench test test-full perf aa soak baselines waiting matrix man completions readme clean

help:
	@echo 'make bench   all topologies under load, one table (installs redis-server if it is missing)'
	@echo 'make test    vet, staticcheck and every test under the race detector'
	@echo 'make test-full  the same with all random cases, and the mutants of the checkers'
	@echo 'make perf    what the suite itself costs, and how locks wait for one hot page; five minutes, calmer with PERF=full'
	@echo 'make aa      20 real comparisons of a thing with itself, and planted differences; six minutes'
	@echo 'make soak    right locks under faults, CPU hogs and pauses for 90 minutes (SOAK=10m): none may be accused'
	@echo 'make build   bin/bench and bin/verify'
	@echo 'make man     manual pages in bin/man; make completions: shell completion in bin/completions'
	@echo 'make baselines  write down again what a visit costs without contention'
	@echo 'make waiting  compare how locks wait for one hot page, and write it into README.md; four minutes'
	@echo 'make matrix  run the matrix with two seeds, write docs/MATRIX.md and its part of README.md; forty minutes'
	@echo 'make readme  write the generated parts of README.md and ARCHITECTURE.md again'

build:
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/bench ./cmd/verify

bench:
	@sh .ci/setup redis
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/bench ./cmd/verify
	bin/bench

# Two phases. Tests whose names begin with TestAlone measure: they come last, and share the cores with nobody. All others
# run side by side, more of them than there are cores, for they wait most of the time; the packages that take longest begin
# first. With -short, tests that draw random cases draw some of them. A program under the race detector sleeps for a second
# before it exits, so that goroutines can still report; tests start hundreds of programs, and a moment is enough for that.
test:
	@sh .ci/setup redis cc chromium
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(RACE) $(GO) test -race -short -vet=off -parallel 4 -skip '^TestAlone' -timeout 10m $(LONGEST) ./...
	$(RACE) $(GO) test -race -short -vet=off -p 1 -run '^TestAlone' -timeout 10m $$($(ALONE))

# Beyond make test: all random cases, and every mutant of the checkers. The race detector has seen these tests in make test,
# and makes them ten times as slow.
test-full: test
	$(GO) test -vet=off -timeout 20m $$($(SHORTENED))

RACE = CGO_ENABLED=1 GORACE=atexit_sleep_ms=50
LONGEST = ./locks ./cmd/bench ./cmd/verify ./topologies

# The packages that have tests which measure, and tests which -short makes shorter.
ALONE = grep -rl --include='*_test.go' '^func TestAlone' . | xargs -n 1 dirname | sort -u
SHORTENED = grep -rl --include='*_test.go' --exclude='*_perf_test.go' 'testing\.Short()' . | xargs -n 1 dirname | sort -u

# Repetitions of the benchmarks; of the turns that the suite and the bare commands have, a second each.
perf:
	@sh .ci/setup redis
	@mkdir -p bin
	@$(GO) test -run '^$$' ./history ./internal/measure ./results/report ./topologies ./internal/harness >/dev/null
	@short=-short times=1x turns=16x; [ $(PERF) != full ] || { short= times=3x turns=40x; }; \
	 { $(GO) test -p 1 -run '^$$' -bench 'Record|Observe' -benchmem ./history ./internal/measure && \
	   $(GO) test -p 1 -run '^$$' -bench 'Report' -benchtime 1x ./results/report && \
	   $(GO) test -p 1 -run '^$$' -bench 'Waiting' -benchtime 1x -timeout 20m $$short ./internal/harness && \
	   $(GO) test -p 1 -run '^$$' -bench 'Up' -benchtime $$times ./topologies && \
	   $(GO) test -p 1 -run '^$$' -bench 'Overhead' -benchtime $$turns -timeout 20m ./internal/harness && \
	   $(GO) test -p 1 -run '^$$' -bench 'Visit|Verify|Dashboard' -benchtime $$times -timeout 20m ./internal/harness || \
	   echo FAIL; } 2>&1 | tee bin/perf.txt
	@awk -f .ci/perf.awk bin/perf.txt

# How often a real deployment is compared with itself. The machine should have nothing else to do.
AA = 20

aa:
	@sh .ci/setup redis
	$(GO) test ./internal/harness -count 1 -timeout 60m -v -parallel 1 -run 'RealPairs|RealDifference' -aa $(AA)

# How long right locks are run with faults, also beside busy loops and with pauses of the suite.
SOAK = 90m

soak:
	@sh .ci/setup redis cc
	$(GO) test ./cmd/verify -count 1 -timeout 0 -v -run 'TestSoak$$' -soak $(SOAK)

# What a visit costs without contention is known: results/baselines. This writes it again.
baselines:
	@sh .ci/setup redis
	$(GO) test ./internal/harness -count 1 -run TestAloneBaselines -update

# How locks wait for one hot page: what the README shows. The machine should have nothing else to do for four minutes.
waiting:
	@sh .ci/setup redis
	$(GO) test -p 1 -run '^$$' -bench 'Waiting' -benchtime 1x -timeout 20m ./internal/harness -update
	@$(MAKE) readme

# Every lock where it must pass and where it must be caught, with one seed after the other: docs/MATRIX.md and the table in
# the README. It stops at a matrix that is red. The machine should have nothing else to do; 20 minutes each.
SEEDS = 1 2

matrix: build
	@sh .ci/setup redis
	@for s in $(SEEDS); do bin/verify matrix --seed $$s --json > bin/matrix-$$s.json || exit 1; done
	$(GO) test -count 1 -run 'TestMatrix$$' . -update -matrix "$$(for s in $(SEEDS); do printf '%sbin/matrix-%s.json' "$$comma" $$s; comma=,; done)"
	@$(MAKE) readme

man: build
	@mkdir -p bin/man
	bin/bench man bin/man
	bin/verify man bin/man

completions: build
	@mkdir -p bin/completions
	@for p in bench verify; do for s in bash zsh fish; do bin/$$p completion $$s > bin/completions/$$p.$$s || exit 1; done; done

readme:
	$(GO) test -count 1 -run 'TestReadme|TestArchitecture|TestMatrix' . -update

clean:
	rm -rf bin
