# Everything that is built goes to bin/, every run to results/runs/; git sees neither.
.POSIX:

GO = go
# How often each perf benchmark is repeated; more is calmer and slower.
PERFTIME = 5x

.PHONY: help build bench test perf readme clean

help:
	@echo 'make bench   five topologies under load, one table (installs redis-server if it is missing)'
	@echo 'make test    vet, staticcheck and every test under the race detector'
	@echo 'make perf    what the suite itself costs'
	@echo 'make build   bin/bench and bin/verify'
	@echo 'make readme  write the generated parts of README.md and ARCHITECTURE.md again'

build:
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/bench ./cmd/verify

bench:
	@sh .ci/setup redis
	@mkdir -p bin
	$(GO) build -o bin/ ./cmd/bench ./cmd/verify
	bin/bench

# Packages one after the other: tests that measure are not to share the cores with other tests. What they need is
# compiled beforehand for the same reason.
test:
	@sh .ci/setup redis cc chromium
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	CGO_ENABLED=1 $(GO) test -race -run '^$$' ./... >/dev/null
	CGO_ENABLED=1 $(GO) test -race -p 1 -timeout 20m ./...

perf:
	@sh .ci/setup redis
	@mkdir -p bin
	@$(GO) test -run '^$$' ./history ./results ./topologies ./internal/harness >/dev/null
	@{ $(GO) test -p 1 -run '^$$' -bench 'Record|Observe' -benchmem ./history ./results && \
	   $(GO) test -p 1 -run '^$$' -bench 'Report' -benchtime 1x ./results && \
	   $(GO) test -p 1 -run '^$$' -bench 'Up' -benchtime 3x ./topologies && \
	   $(GO) test -p 1 -run '^$$' -bench 'Visit|Overhead|Verify|Dashboard' -benchtime $(PERFTIME) -timeout 20m ./internal/harness || \
	   echo FAIL; } 2>&1 | tee bin/perf.txt
	@awk -f .ci/perf.awk bin/perf.txt

readme:
	$(GO) test -count 1 -run 'TestReadme|TestArchitecture' . -update

clean:
	rm -rf bin
