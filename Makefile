# Everything that is built goes to bin/, every run to results/runs/; git sees neither.
.POSIX:

GO = go
# make perf takes ten minutes, PERF=full longer: more rounds are calmer.
PERF = quick

.PHONY: help build bench failover pageviews beyond beyond-servers beyond-vet beyond-test compare drivers drivers-perf record record-deps test test-strict test-logic test-full flakes lint perf aa soak simulate expect mutants baselines waiting man completions notices readme readme-check pictures site release-check clean

help:
	@echo 'make bench   all topologies under load, one table (installs redis-server if it is missing)'
	@echo 'make failover  break the primary of each topology again and again, and write docs/FAILOVER.md; 90 minutes (FAILOVER="--kills 5": thirty)'
	@echo 'make pageviews  examples/pageviews: a service behind nginx loses page views without a distributed lock; half a minute'
	@echo 'make beyond  bin/beyond/bench and verify, which know PostgreSQL, MariaDB, etcd and ZooKeeper as well: docs/BEYOND.md'
	@echo 'make beyond-servers  install those servers; make beyond-test: the tests of the module, of what is installed'
	@echo 'make test    vet and every test, what runs no whole program under the race detector; ten minutes the first time, for half of it goes into building'
	@echo 'make test-strict  the same, nothing is run again; make test-logic: the tests that need no server, a quarter of a minute once built'
	@echo 'make test-full  the same with more random cases (with NIGHTLY=true all), and the recipes of CONTRIBUTING.md in a copy of the tree'
	@echo 'make flakes  make test-strict ten times beside a busy loop on each core: which tests are red now and then? Two hours'
	@echo 'make lint    staticcheck, and the workflows in .github'
	@echo 'make perf    what the suite itself costs; ten minutes, calmer with PERF=full'
	@echo 'make aa      20 real comparisons of a thing with itself, and planted differences; six minutes'
	@echo 'make soak    right locks under faults, CPU hogs and pauses for 90 minutes (SOAK=10m SOAK_LOCKS=lease): none may be accused'
	@echo 'make simulate  judge 50 000 simulated histories of right locks and as many of wrong ones; minutes (SIMULATE=5000 SIMULATE_SEED=1)'
	@echo 'make expect  every lock against what its entry says, in docs/MATRIX.md; an hour, or EXPECT="--lock broken --topology single,redlock": two minutes'
	@echo 'make mutants right locks with one place changed: does verify notice? Hours, or minutes with MUTANTS_STAGE=explore'
	@echo 'make build   bin/bench and bin/verify'
	@echo 'make drivers  install what the drivers in drivers/ need, and build that in Go: docs/DRIVERS.md'
	@echo 'make drivers-perf  what the pipe to a driver costs: 16 workers with it and without it, in Go, Python and node; two minutes'
	@echo 'make record  judge released lock libraries that were not judged yet, and write docs/record; hours, or make record LIBRARY=redlock'
	@echo 'make record-deps  install what the drivers of record/ need: the modules of npm, and drivers in Go (LIBRARY=redsync: of one)'
	@echo 'make man     manual pages in bin/man; make completions: shell completion in bin/completions; make notices: licences in bin/NOTICES'
	@echo 'make baselines  write down again what a visit costs without contention (LOCK=lease: with that lock)'
	@echo 'make compare  measure Redis, databases, etcd and ZooKeeper side by side, and write docs/COMPARE.md; ten minutes'
	@echo 'make waiting  how locks wait for one hot page, 32 and 256 workers: docs/LOCKS.md; four minutes'
	@echo 'make readme  write the generated parts of the documents again'
	@echo 'make pictures  take the pictures of the documents from real runs; five minutes, or PICTURES=report'
	@echo 'make site    the documents as a site, in bin/site: a dead link fails'
	@echo 'make release-check  build what a release publishes, and run the Linux archive in an empty root; minutes, the first time more'
	@echo 'make readme-check  run every command of README.md in a fresh clone of what is committed; fifteen minutes'

build:
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/bench ./cmd/verify

bench:
	@sh .ci/setup redis
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/bench ./cmd/verify
	bin/bench

# What failovers do to a lock, for somebody who has to choose. That grants are lost is a result, not an error. The machine should have
# nothing else to do.
FAILOVER = --kills 20
FAILOVER_ROWS = fault=kill-primary topology=sentinel,cluster,redlock,fault=pause-primary topology=sentinel,cluster,fault=failover \
	topology=sentinel,cluster,lock=wait,wait-one,fault=kill-primary topology=sentinel,fault=kill-primary,min-replicas=1 \
	topology=sentinel,lock=lease,wait,fault=lost-grant,pages=2,rate=40/s topology=sentinel,cluster,fault=kill-primary,profile=stock,kills=2

failover: build
	@sh .ci/setup redis
	bin/bench failover $(FAILOVER) $(FAILOVER_ROWS) --markdown docs/FAILOVER.md || [ $$? -eq 1 ]

pageviews:
	@sh .ci/setup redis nginx
	@mkdir -p bin
	$(GO) build -o bin/ ./examples/pageviews
	bin/pageviews

# A module of its own, with the clients of servers that are not Redis. Nothing else needs it.
beyond:
	@mkdir -p bin/beyond
	cd beyond && $(GO) build -o ../bin/beyond/ ./cmd/...

beyond-servers:
	@sh .ci/setup redis postgres mariadb etcd zookeeper

# All of it compiles, tests too. CI does this: the tests themselves need those servers, and minutes.
beyond-vet:
	cd beyond && $(GO) vet ./...

beyond-test: beyond-vet
	@sh .ci/setup redis
	cd beyond && $(GO) test -short -vet=off -timeout 10m ./...

# What people choose between, side by side: docs/COMPARE.md. The machine should have nothing else to do; ten minutes.
compare: beyond beyond-servers
	bin/beyond/compare

# Locks in other languages, behind the protocol of docs/DRIVERS.md. Nothing else needs them.
drivers:
	@sh .ci/setup node python
	@sh .ci/setup php || echo 'drivers/php is left out: Symfony Lock is a package of Debian and its kin' >&2
	cd drivers/node && npm ci --no-audit --no-fund
	@mkdir -p bin
	cd drivers/go && $(GO) build -o ../../bin/go-redislock .

# The machine should have nothing else to do.
drivers-perf: drivers
	$(GO) test ./drivers -run '^$$' -bench Drivers -benchtime 10x -timeout 20m

# Released libraries, release by release: record/README.md. LIBRARY is one, or LIBRARY@VERSION, and is judged again. What was judged is
# kept, so that a record that was cut short goes on where it was.
LIBRARY =

record-deps: drivers
	@sh .ci/setup laravel rq || echo 'Laravel and rq are left out: they are packages of Debian and its kin' >&2
	cd record/node && npm ci --no-audit --no-fund --ignore-scripts --legacy-peer-deps
	$(GO) run ./tools/record -deps -library "$(LIBRARY)"

record: build
	@sh .ci/setup redis cc
	$(GO) run ./tools/record -library "$(LIBRARY)"

# How tests are run, and what is run again, says .ci/test. With -short, tests that draw random cases draw some of them.
test:
	@sh .ci/setup redis cc chromium nginx
	@.ci/test

test-strict:
	@sh .ci/setup redis cc chromium nginx
	@.ci/test strict

# Logic tests need no server, no process, no port: of all packages but those that .ci/live lists.
test-logic:
	$(GO) test -short -skip '^(TestLive|TestAlone)' $$($(GO) list ./... | grep -vxFf .ci/live)

# With what make test leaves out: more random cases, all of them with NIGHTLY=true, and the recipes.
test-full:
	@sh .ci/setup redis cc chromium nginx
	@.ci/test full

# How often all tests are run beside busy loops; with FLAKES= what failed is run again meanwhile, as make test does.
ROUNDS = 10
FLAKES = strict

flakes:
	@sh .ci/setup redis cc chromium nginx
	.ci/flakes $(ROUNDS) "$(FLAKES)"

lint:
	$(GO) tool staticcheck ./...
	$(GO) tool -modfile=.ci/tools.mod actionlint .github/workflows/*.yml

# Repetitions of the benchmarks; of the turns that the suite and the bare commands have, a second each.
perf:
	@sh .ci/setup redis
	@mkdir -p bin
	@$(GO) test -run '^$$' ./history ./internal/measure ./results/report ./explore ./topologies ./internal/harness ./internal/wire ./internal/witness ./internal/cli >/dev/null
	@times=1x turns=16x; [ $(PERF) != full ] || { times=3x turns=40x; }; \
	 { $(GO) test -p 1 -run '^$$' -bench 'Record|Observe' -benchmem ./history ./internal/measure && \
	   $(GO) test -p 1 -run '^$$' -bench 'Report' -benchtime 1x ./results/report && \
	   $(GO) test -p 1 -run '^$$' -bench 'Explore' -benchtime 1x ./explore && \
	   $(GO) test -p 1 -run '^$$' -bench 'Wire(Command|Pipelined|Steady)' -benchtime 5x ./internal/wire && \
	   $(GO) test -p 1 -run '^$$' -bench 'Witness' -benchtime 1x ./internal/witness && \
	   $(GO) test -p 1 -run '^$$' -bench 'WatchAlone' -benchtime 3x ./internal/cli && \
	   $(GO) test -p 1 -run '^$$' -bench 'Up' -benchtime $$times ./topologies && \
	   $(GO) test -p 1 -run '^$$' -bench 'Overhead' -benchtime $$turns -timeout 20m ./internal/harness && \
	   $(GO) test -p 1 -run '^$$' -bench 'Visit|Verify|Dashboard' -benchtime $$times -timeout 20m ./internal/harness && \
	   $(GO) test -p 1 -run '^$$' -bench 'Scenarios' -benchtime 1x ./internal/harness || \
	   echo FAIL; } 2>&1 | tee bin/perf.txt
	@awk -f .ci/perf.awk bin/perf.txt

# How often a real deployment is compared with itself. The machine should have nothing else to do.
AA = 20

aa:
	@sh .ci/setup redis
	$(GO) test -vet=off -count 1 -v -timeout 30m -run '^TestAlone(AThing|Planted)' ./internal/harness -comparisons $(AA)

# How long right locks are run with faults, also beside busy loops and with pauses of the suite.
SOAK = 90m
SOAK_LOCKS = right

# Whose mutants, who is asked (both, explore), for how long, how many at a time, how many more for the scenarios alone, and
# whether those that nobody noticed are asked about again: docs/MUTANTS.md.
MUTANTS_OF = all
MUTANTS_STAGE = both
MUTANTS_FOR = 3h
MUTANTS_JOBS = 1
MUTANTS_SAMPLE = 0
MUTANTS_AGAIN = false

soak: build
	@sh .ci/setup redis cc
	bin/verify soak --topology all --lock "$(SOAK_LOCKS)" --for $(SOAK) --duration 13s --disturb --out bin/soak

# How many histories of right locks are simulated, and how many of wrong ones, and with which seed the first.
SIMULATE = 50000
SIMULATE_SEED = 1

simulate:
	$(GO) run ./tools/simulate -n $(SIMULATE) -seed $(SIMULATE_SEED)
	$(GO) run ./tools/simulate -n $$(($(SIMULATE) / 20)) -seed $(SIMULATE_SEED) -facts

# Which locks, and where: rows of others stay in docs/MATRIX.md. A lock that is not as expected is a result, too: the document says it.
EXPECT = --lock all

expect: build
	@sh .ci/setup redis cc
	bin/verify $(EXPECT) --expect --markdown docs/MATRIX.md

mutants:
	@sh .ci/setup redis cc
	$(GO) run ./tools/mutants -of $(MUTANTS_OF) -stage $(MUTANTS_STAGE) -for $(MUTANTS_FOR) -jobs $(MUTANTS_JOBS) -sample $(MUTANTS_SAMPLE) -again=$(MUTANTS_AGAIN)
	@$(MAKE) readme

# What a visit costs without contention is known: results/baselines. This writes it again, or of these locks alone.
LOCK =

baselines:
	@sh .ci/setup redis
	$(GO) run ./tools/baselines $(LOCK)

# How locks wait for one hot page: docs/LOCKS.md. The machine should have nothing else to do.
WAITING = lease,spin,redisson,fair,redsync,redislock,rueidislock,handoff,handoff-cohort

waiting: build
	@sh .ci/setup redis
	@for n in 32 256; do \
		bin/bench --topology single --lock $(WAITING) --pages 1 --workers $$n --hold 1ms --patience 1m --warmup 1s || exit 1; done

man: build
	@mkdir -p bin/man
	bin/bench man bin/man
	bin/verify man bin/man

completions: build
	@mkdir -p bin/completions
	@for p in bench verify; do for s in bash zsh fish; do bin/$$p completion $$s > bin/completions/$$p.$$s || exit 1; done; done

# The licences of all that is linked, and embedded: what archives and images carry beside LICENSE.
notices:
	@mkdir -p bin
	.ci/notices bin/NOTICES

readme:
	$(GO) test -count 1 -run '^Test(Readme|Architecture|Claims|Kept|Matrix)$$' . -update
	$(GO) run ./tools/record -docs

# Which pictures of docs/pictures are taken.
PICTURES = dashboard,board,report,comparison,runs,scenarios

pictures: build
	@sh .ci/setup redis chromium tmux
	$(GO) run ./tools/pictures -only $(PICTURES)

# The path that the site will have on its server.
SITE = /

site:
	@sh .ci/setup node
	@SITE=$(SITE) .ci/site/build

release-check:
	.ci/release-check

readme-check:
	@.ci/readme-check

clean:
	rm -rf bin
