# Bare make prints what there is. Everything works offline once the modules and
# the npm packages are there.
.DEFAULT_GOAL := help
FUZZTIME ?= 20s

FUZZSHORT ?= 5s

.PHONY: help test test-long race lint cross types vuln generate check-generated behind web check-web fuzz matrix cover interop real-agents bench bench-net bench-quick bench-program bench-start bench-tap bench-web bench-gateway bench-cluster bench-network tools torture simulate bench-harness docs release-test steady ci

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## run the tests of the library and the program
	go test work

test-long: ## run the tests that take long, which go test leaves out (about 10 minutes)
	.ci/long

steady: ## look for tests that depend on chance: 20 rounds of all on a busy machine (overnight)
	.ci/steady -rounds 20

race: ## the same under the race detector
	go test -race work

lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet work
	go tool staticcheck ./... ./acpws/... ./cmd/acp/...

cross: ## build and vet for Windows and macOS
	GOOS=windows go build work && GOOS=windows go vet work
	GOOS=darwin go build work && GOOS=darwin go vet work

types: ## check the types for Windows and macOS, which takes a tenth of the time
	go run ./cmd/acp/internal/cross windows darwin -- work

vuln: ## look the dependencies up in the vulnerability database (needs the network)
	go tool govulncheck ./... ./acpws/... ./cmd/acp/...

generate: ## write the generated packages from schema/
	go generate ./...

check-generated: ## fail if they are stale
	go run ./internal/gen -check

behind: ## compare schema/ with the newest official package (needs the network)
	go run ./internal/gen behind

web: ## write the page of the gateway from its sources (needs the network once)
	go generate ./cmd/acp/internal/web

check-web: ## fail if the page is stale or its types are wrong (needs Node, and the network once)
	go run ./cmd/acp/internal/web/bundle -dir cmd/acp/internal/web -check
	cd cmd/acp/internal/web && npm ci --ignore-scripts --no-audit --no-fund && npx tsc -p .

fuzz: ## run the fuzz targets of the wire for FUZZTIME (20s), all others for FUZZSHORT (5s)
	.ci/fuzz $(FUZZTIME) $(FUZZSHORT)

matrix: ## try every rule of package conformance on every broken peer (about 15 minutes)
	CONFORMANCE_ALL=1 go test -run TestBroken -timeout 60m ./conformance

cover: ## statement coverage of the hand-written packages, at least 85 %
	.ci/cover 85

interop: ## test against the official SDK over real processes (needs Node)
	cd interop && npm ci --no-audit --no-fund && GOWORK=off ACP_ORACLE=require go test -timeout 30m ./...

real-agents: ## run agents from npm offline, with a stand-in for their models (needs Node, 1.7 GB)
	@# Not npm ci: it refuses the lock file, which names no packages for other systems.
	cd interop/real && npm install --no-save --ignore-scripts --no-audit --no-fund
	cd interop && ACP_REAL=1 GOWORK=off go test -count=1 -timeout 30m ./real

bench: ## compare with other SDKs and write bench/RESULTS.md (about 8 minutes, needs Node)
	cd bench && npm ci --no-audit --no-fund && GOWORK=off go run . -write

bench-net: ## make bench for HTTP and WebSocket alone, into bench/RESULTS.md (about 3 minutes)
	cd bench && npm ci --no-audit --no-fund && GOWORK=off go run . -only '/(http|ws)' -write

bench-quick: ## make bench in about a minute, without writing
	cd bench && npm ci --no-audit --no-fund && GOWORK=off go run . -quick

bench-program: ## measure the first paint, the memory and bursts of the program (Linux)
	cd cmd/acp && go test -run '^$$' -bench 'FirstPaint|Idle|Written|Hold$$' -benchtime 20x . && go test -run '^$$' -bench Burst -benchtime 5x .

bench-start: ## measure what processes of the program do before they are of use, beside BEFORE, a commit (Linux)
	cd cmd/acp && ACP_BEFORE=$(BEFORE) go test -run '^$$' -bench 'Start$$' -benchtime 21x .

bench-tap: ## measure what acp tap adds to a turn (Linux; with Node if it is there)
	cd cmd/acp && go test -run '^$$' -bench Tap -benchtime 3s .

bench-web: ## measure the page of the gateway in Chromium, into bench/gateway/web.json (about 3 minutes)
	go test ./cmd/acp/internal/test/web -run TestMeasure -count=1 -timeout 20m -v -measure "$(CURDIR)/bench/gateway/web.json"

bench-gateway: ## measure the gateway and write bench/GATEWAY.md (about 11 minutes; with Node if it is there)
	cd bench && if command -v npm >/dev/null; then npm ci --no-audit --no-fund; fi && GOWORK=off go run ./gateway -write

bench-cluster: ## measure faults of nodes that share PostgreSQL, into bench/gateway/cluster.jsonl and bench/GATEWAY.md (about 8 minutes; with Patroni if it is there)
	rm -f bench/gateway/cluster.jsonl
	go test ./cmd/acp/internal/test/cluster -cluster -lease 10s -measure "$(CURDIR)/bench/gateway/cluster.jsonl" -count=1 -timeout 30m
	cd bench && GOWORK=off go run ./gateway -kept

bench-network: ## prompt through faulty networks, into bench/gateway/network.jsonl and bench/GATEWAY.md (about 3 minutes; with PostgreSQL if it is there)
	rm -f bench/gateway/network.jsonl
	cd cmd/acp && ACP_TESTS=all NETWORK_PROMPTS=10 NETWORK_REPORT=$(CURDIR)/bench/gateway/network.jsonl go test -count=1 -timeout 30m -run TestNetwork ./internal/test/torture
	cd bench && GOWORK=off go run ./gateway -kept

tools: ## hold the tools of the agent to their bars in full: 2,000 files with twins, 500 turns on each wire, 500 kills (about 20 minutes)
	cd cmd/acp/internal/agent && go test -count=1 -timeout 60m -run 'Twins$$' ./edit -twins 1500
	cd cmd/acp/internal/agent && ACP_TESTS=all go test -count=1 -timeout 60m -run '^TestWires$$' . -turns 500
	cd cmd/acp/internal/agent && ACP_TESTS=all go test -count=1 -timeout 60m -run '^TestOutside$$' ./tool -outside 5000
	cd cmd/acp/internal/shellline && go test -count=1 -timeout 60m -run '^TestValues$$' . -values 1
	cd cmd/acp/internal/agent && ACP_TESTS=all go test -count=1 -timeout 60m -run '^TestKilledConversation$$' . -kills 500

torture: ## kill each part of a gateway 1,000 times and write bench/gateway/torture.jsonl (about 7 minutes)
	rm -f bench/gateway/torture.jsonl
	cd cmd/acp && ACP_TESTS=all TORTURE_KILLS=1000 TORTURE_REPORT=$(CURDIR)/bench/gateway/torture.jsonl go test -count=1 -timeout 60m ./internal/test/torture

simulate: ## take 1,000,000 random steps with a gateway that is killed between any two records (about an hour)
	go test -count=1 -timeout 6h -run '^TestSimulation$$' ./cmd/acp/internal/gateway -steps 1000000

bench-harness: ## give six agents the same tasks and write bench/HARNESS.md (about 10 minutes; after real-agents)
	cd bench && GOWORK=off go run ./harness -write

docs: ## write docs/cli.md and the pictures of the terminal in docs/screens/ anew
	cd cmd/acp && go test ./internal/cli -run TestDocs -update && go test ./internal/test/screens -update

release-test: ## release this commit in a clone that is thrown away, and install it from there
	.ci/release-test

ci: ## what CI runs
	.ci/run
