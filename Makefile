# `make help` lists the targets. Tools and the parts of the local cluster are built from pinned modules into a cache outside
# the work tree, keyed by version: ${TIDELINE_CACHE:-${XDG_CACHE_HOME:-~/.cache}/tideline}.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
ifeq ($(filter oneshell,$(.FEATURES)),)
$(error this Makefile needs GNU make 3.82 or later, because a recipe is one shell program)
endif
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
# Seconds since 1970, of the commit: what is built bears the date of what it is built from, so that it is the same each time.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
DATE = $(shell { date -u -d '@$(SOURCE_DATE_EPOCH)' +%FT%TZ || date -u -r '$(SOURCE_DATE_EPOCH)' +%FT%TZ || echo unknown; } 2>/dev/null)
IMG ?= tideline:latest
CONTAINER_TOOL ?= docker
ARGS ?=
HISTORIES ?= 100000
FUZZTIME ?= 1m
GOVULNDB ?= https://vuln.go.dev

# The local cluster. Several run side by side, each known by its kubeconfig. TIDELINE_KUBERNETES and TIDELINE_VOLCANO choose another
# version than the newest, here and in tests: those that folders under test/cluster/modules are named by.
GPU_NODES ?= 4
GPUS_PER_NODE ?= 8
CLUSTER_KUBECONFIG ?=
AUDIT_LOG ?=
OBJECT_STORE ?=
# Of make bench-merge: simulated seconds per second, machines of each pool, who starts merges (empty: all). Results of others, made at
# the same scale, stay.
SCALE ?= 300
POOLS ?= 8,12,16,20,24,28,32,36,40
STRATEGIES ?=
# Of make bench-many: how many jobs come at once, run after run.
SIZES ?= 500,2000,10000
# Of make bench-sizing: by which tasks are drawn, with commas; those of the page by default.
SEEDS ?=
ONESHOT ?=
# Of make bench-outcome: the jobs of Philly, as columns timestamp, duration, num_gpus and cluster.
TRACE ?= ../shared/data/philly.csv
# Of make bench-fragmentation: the folder of openb's nodes and pods.
OPENB ?= ../shared/data
# Which runs: flags -days, -loads, -seeds, -only. The whole is -days=7 -seeds=5 with all loads.
RUNS ?= -days=1 -loads=0.9 -seeds=2
# Of make bench-giveway: newcomers under each pair of actions.
TRIALS ?= 60
# Of make bench-console: how often it measures, each time a minute without and a minute with readers.
ROUNDS ?= 4
# The folder in which MergeJobs may have stores of provider file, with make run; nothing for none.
ALLOW_LOCAL_STORES ?= $(or $(TIDELINE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tideline)/stores
# With anything, make vuln succeeds where there is no database.
OPTIONAL ?=

TOOL := test/tools/build.sh
# Where programs of ours are built.
BIN := bin
# Modules with code of ours, besides the root.
MODULES := test/perf/sizing test/project test/tools/bundle test/tools/chart test/tools/sbom test/tools/site
# Without version control stamps: they fail in a checkout that belongs to somebody else, and bin/ is not released.
GO_BUILD = CGO_ENABLED=0 go build -buildvcs=false \
	-ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)'
IMAGE_ARGS = --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE)
KUBECTL_APPLY := apply --request-timeout=30s -f -
KUBECTL_DELETE := delete --ignore-not-found --timeout=60s -f -

# Deletes every job, merge and profile, and waits until all that belongs to them is gone. Once their kind is gone as well, the garbage
# collector knows no more whose their pods were, and leaves those that it has not come to.
define delete_all
for kind in elastictrainingjobs mergejobs; do
	if "$$kubectl" get crd "$$kind.tideline.io" >/dev/null 2>&1; then
		"$$kubectl" delete "$$kind" --all --all-namespaces --cascade=foreground --timeout=5m
	fi
done
if "$$kubectl" get crd resourcequotaprofiles.tideline.io >/dev/null 2>&1; then
	"$$kubectl" delete resourcequotaprofiles --all --timeout=1m
fi
left() { "$$kubectl" get queues.scheduling.volcano.sh -l tideline.io/profile -o name 2>/dev/null; }
for _ in $$(seq 30); do
	[[ -n "$$(left)" ]] || break
	sleep 1
done
[[ -z "$$(left)" ]] || echo "these Queues stay, because no operator runs that deletes those of profiles:" $$(left)
endef

# Holds where Volcano is there to have Queues.
serves_queues = "$$kubectl" get crd queues.scheduling.volcano.sh >/dev/null 2>&1

# Builds a program of ours aside and renames it, so that two builds at the same time never start half a program.
# $(call build,NAME,PACKAGE)
define build
mkdir -p '$(BIN)'
$(GO_BUILD) -o $(BIN)/.$(1).$$$$ $(2)
mv $(BIN)/.$(1).$$$$ $(BIN)/$(1)
endef

# Sets $kubectl: the one on PATH, else the one that is built with the local cluster.
define find_kubectl
kubectl=$$(command -v kubectl || { $(MAKE) -s $(BIN)/localcluster >&2 && $(BIN)/localcluster kubectl; })
endef

##@ General

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make TARGET [VARIABLE=value]" }
		/^##@ / { printf "\n%s\n", substr($$0, 5) }
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

##@ Development

.PHONY: build
build: ## Build the operator into bin/tideline.
	@$(call build,tideline,.)
	echo "built $(BIN)/tideline $(VERSION)"

.PHONY: generate
generate: ## Generate deep copies and docs/reference/api.md from api/.
	@controller_gen=$$($(TOOL) controller-gen)
	crd_ref_docs=$$($(TOOL) crd-ref-docs)
	echo "generating deep copies in api/"
	"$$controller_gen" object paths=./api/...
	echo "generating docs/reference/api.md"
	"$$crd_ref_docs" --source-path=api/v1beta1 --config=test/tools/crd-ref-docs/config.yaml \
		--templates-dir=test/tools/crd-ref-docs/templates --renderer=markdown --output-path=docs/reference/api.md --log-level=ERROR

.PHONY: manifests
manifests: ## Generate CRDs, the operator's roles and its webhooks under config/ from markers.
	@controller_gen=$$($(TOOL) controller-gen)
	echo "generating config/crd/bases"
	"$$controller_gen" crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=config/crd/bases
	go run -buildvcs=false ./test/tools/crdbounds config/crd/bases/*.yaml
	echo "generating config/rbac/role.yaml"
	"$$controller_gen" rbac:roleName=tideline-manager "paths={./controllers/...,./internal/...}" output:rbac:dir=config/rbac
	echo "generating config/webhook/manifests.yaml"
	"$$controller_gen" webhook paths=./internal/webhook/... output:webhook:dir=config/webhook

.PHONY: bundle
bundle: manifests ## Generate bundle/, by which OLM installs the operator (VERSION and IMG stand in it if given), and the chart for Helm.
	@kustomize=$$($(TOOL) kustomize)
	echo "generating bundle/"
	"$$kustomize" build config/manifests | go -C test/tools/bundle run . -repository='$(CURDIR)' \
		$(if $(filter command,$(origin VERSION)),-version='$(VERSION)') $(if $(filter command,$(origin IMG)),-image='$(IMG)')
	echo "generating templates and schema of config/chart"
	go -C test/tools/chart run . -repository='$(CURDIR)'

.PHONY: site
site: ## Build docs into bin/site, which a browser reads as it is.
	@go -C test/tools/site run . -repository='$(CURDIR)' -out='$(CURDIR)/bin/site'

.PHONY: tidy
tidy: ## Bring go.mod up to date, here and in the other modules with code of ours, of which test/project follows it.
	@go mod tidy
	for module in $(MODULES); do go -C "$$module" mod tidy; done

.PHONY: fmt
fmt: ## Format the code.
	@golangci_lint=$$($(TOOL) golangci-lint)
	"$$golangci_lint" fmt

.PHONY: vet
vet: ## Run go vet.
	@echo "go vet ./..."
	go vet ./...
	for module in $(MODULES); do
		echo "go vet ./... in $$module"
		go -C "$$module" vet ./...
	done

.PHONY: lint
lint: ## Run golangci-lint, import rules included.
	@golangci_lint=$$($(TOOL) golangci-lint)
	echo "golangci-lint run"
	"$$golangci_lint" run
	for module in $(MODULES); do
		echo "golangci-lint run in $$module"
		(cd "$$module" && "$$golangci_lint" run --config '$(CURDIR)/.golangci.yml')
	done

# Where the database is not reached, its copy of the day that test/tools/vulndb pins is used, which the Go module cache keeps.
.PHONY: vuln
vuln: ## Look for known vulnerabilities in the code that the operator runs, in GOVULNDB, else in the copy that is pinned here.
	@govulncheck=$$($(TOOL) govulncheck)
	said=$$(mktemp)
	trap 'rm -f "$$said"' EXIT
	check() {
		echo "govulncheck . with $$1"
		status=0
		"$$govulncheck" -db="$$1" . 2>"$$said" || status=$$?
		cat "$$said" >&2
		# What govulncheck was about when the database, or a part of it, could not be had. Its status then is that of other errors.
		((status != 1)) || ! grep -Eq '(creating client|fetching vulnerabilities): ' "$$said"
	}
	if check '$(GOVULNDB)'; then
		exit $$status
	fi
	if copy=$$(go -C test/tools/vulndb mod download -json golang.org/x/vulndb); then
		day=$$(sed -En 's/.*"Version": ".*-([0-9]{4})([0-9]{2})([0-9]{2})[0-9]{6}-.*/\1-\2-\3/p' <<<"$$copy")
		echo "$(GOVULNDB) is not reached: what is known since $$day is not looked for" >&2
		if check "file://$$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' <<<"$$copy")/data/osv"; then
			exit $$status
		fi
	fi
	echo "not run: without $(GOVULNDB) nothing was checked; give a copy, as in GOVULNDB=file:///path" >&2
	$(if $(OPTIONAL),exit 0,exit 1)

.PHONY: run
run: ## Run the operator outside the cluster of KUBECONFIG, without webhooks, on free ports; ARGS are its flags; ALLOW_LOCAL_STORES.
	@$(call build,tideline,.)
	$(if $(ALLOW_LOCAL_STORES),mkdir -p '$(ALLOW_LOCAL_STORES)')
	exec $(BIN)/tideline run --webhooks=false --health-probe-bind-address=127.0.0.1:0 \
		$(if $(ALLOW_LOCAL_STORES),--allow-local-stores="$$(cd '$(ALLOW_LOCAL_STORES)' && pwd)") $(ARGS)

.PHONY: docker-build
docker-build: ## Build the image IMG with CONTAINER_TOOL.
	@$(CONTAINER_TOOL) build $(IMAGE_ARGS) -t $(IMG) .

# Without a provenance attestation, which has the time of the build: the same commit and base image make the same digest.
.PHONY: docker-buildx
docker-buildx: ## Build the image IMG for linux/amd64 and linux/arm64 with docker buildx, and push it.
	@$(CONTAINER_TOOL) buildx build --platform=linux/amd64,linux/arm64 $(IMAGE_ARGS) \
		--build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) --provenance=false \
		--output type=image,name=$(IMG),push=true,rewrite-timestamp=true .

.PHONY: sbom
sbom: build ## Write bin/tideline.cdx.json, a software bill of materials (CycloneDX) of bin/tideline.
	@go -C test/tools/sbom run . '$(abspath $(BIN))/tideline' >$(BIN)/.tideline.cdx.json
	mv $(BIN)/.tideline.cdx.json $(BIN)/tideline.cdx.json
	echo "wrote $(BIN)/tideline.cdx.json"

##@ Tests

.PHONY: test
test: ## Run unit tests, and scenarios and faults on a real API server and Volcano; with -race.
	@exec test/run.sh unit project chart cluster+faults integration+profile+merge,report

.PHONY: test-long
test-long: ## Run what waits or tries too much for make test: long specs, Volcano as shipped, shared GPUs, HyperNodes, pages of trainings, also through a real gateway, order and sizing, the model of capacity beside Volcano, unit tests with new seeds and in random order, both of Volcano's pairs of actions, notebooks with Kubeflow's controller, a crash at every write.
	@status=0
	TIDELINE_FRESH=1 test/run.sh unit project chart || status=1
	TIDELINE_LABELS=long test/run.sh cluster integration merge profile report || status=1
	TIDELINE_LABELS= TIDELINE_DIFFERENTIAL=300 test/run.sh stock,order+sharing,pages,capacity+topology,sizing || status=1
	TIDELINE_FAULTS=each test/run.sh crashes seeds mergeline pairs notebooks gateway faults || status=1
	exit $$status

.PHONY: test-faults
test-faults: ## Hit every write of the operator with every fault; up to an hour.
	@TIDELINE_FAULTS=full exec test/run.sh faults

.PHONY: test-install
test-install: ## Follow the documentation, upgrade and go back, crash one of two replicas, install by Helm and OLM, build image and site.
	@exec test/run.sh quickstart demo install image site bundle helm olm

.PHONY: test-pytorchjob
test-pytorchjob: ## Hold training-operator, built for it, Volcano's controller, and what convert makes of their jobs to their documented differences.
	@exec test/run.sh pytorchjob volcanojob

.PHONY: e2e-node
e2e-node: ## Train with PyTorch on a real kubelet and containerd, as root on Debian 12: 40 minutes and 6 GB the first time.
	@exec test/run.sh node

.PHONY: test-versions
test-versions: ## Show the scenarios of the main way on each supported pair of Kubernetes and Volcano, and build what is missing.
	@exec test/run.sh versions

.PHONY: test-merge
test-merge: ## Show the behaviours of merges on Volcano and a real S3 server; a part of make test.
	@exec test/run.sh merge

.PHONY: test-profile
test-profile: ## Show the behaviours of profiles on Volcano; a part of make test.
	@exec test/run.sh profile

.PHONY: test-hostile
test-hostile: ## Try all that docs/security.md says an attacker may try, and list what was contained; half an hour.
	@exec go run -buildvcs=false ./test/tools/hostile $(ARGS)

.PHONY: test-pools
test-pools: ## Hold the operator to its figures with 5,000 merges in 50 pools; minutes.
	@exec test/run.sh pools

.PHONY: test-jobs
test-jobs: ## Hold the operator to its figures with 500 jobs that come at once; minutes. TIDELINE_ROOT measures another source tree.
	@exec test/run.sh jobs

.PHONY: test-soak
test-soak: ## Hold the operator to its limit of memory, and to serving others, beside thousands of hostile objects; TIDELINE_SOAK percent of them; half an hour and 10 GB.
	@exec test/run.sh soak

.PHONY: test-ledger
test-ledger: ## Hold the ledger to its figures with a million days of pods, on SQLite and PostgreSQL; minutes.
	@exec test/run.sh ledger

.PHONY: test-requests
test-requests: ## Hold what sizing requests to its aims, beside Vertical Pod Autoscaler and KRR; minutes.
	@exec test/run.sh requests

.PHONY: histories
histories: ## Hold Plan, merges and the arbiter to their laws over HISTORIES (100000) random histories, without -race; minutes.
	@TIDELINE_HISTORIES=$(HISTORIES) GOGC=400 go test -count=1 -timeout=60m -run='^TestRandomHistories$$' -v ./internal/training
	@TIDELINE_HISTORIES=$(HISTORIES) go test -count=1 -timeout=60m -run='^TestBehaviour8LimitsHoldWhateverHappens$$' ./internal/quota/admission
	@TIDELINE_HISTORIES=$$(( $(HISTORIES) / 20 )) GOGC=400 go test -count=1 -timeout=60m -run='^TestRandomPools$$' ./internal/merging
	TIDELINE_HISTORIES=$$(( $(HISTORIES) / 50 )) GOGC=400 exec go test -count=1 -timeout=60m -run='^TestRandomQueues$$' ./internal/capacity/arbiter

.PHONY: fuzz
fuzz: ## Have the fuzzer look for histories that break a law of Plan, and for reviews that hurt, for FUZZTIME (1m) each.
	@go test -run='^$$' -fuzz='^FuzzPlan$$' -fuzztime=$(FUZZTIME) -fuzzminimizetime=100x ./internal/training
	exec go test -run='^$$' -fuzz='^FuzzReview$$' -fuzztime=$(FUZZTIME) -fuzzminimizetime=100x ./internal/webhook

.PHONY: test-all
test-all: ## Run every suite this machine can run, and say what was not run and why.
	@failed=()
	try() {
		$(MAKE) "$$@" || failed+=("$$1")
	}
	for target in test test-long test-versions test-install test-pytorchjob test-pools test-jobs test-soak test-ledger test-requests histories fuzz test-faults; do
		try "$$target"
	done
	try demo ONESHOT=1
	try demo-merge ONESHOT=1
	try vuln OPTIONAL=1
	if [[ $$EUID == 0 && -e /etc/os-release && $$(. /etc/os-release && echo "$$ID $${VERSION_ID:-}") == "debian 12" ]]; then
		try e2e-node
	else
		echo "not run: e2e-node: it takes root on Debian 12"
	fi
	if command -v $(CONTAINER_TOOL) >/dev/null; then
		try docker-build
	else
		echo "not run: docker-build: there is no $(CONTAINER_TOOL) on PATH"
	fi
	if (($${#failed[@]})); then
		echo "FAIL: make $${failed[*]}" >&2
		exit 1
	fi

.PHONY: demo
demo: ## Tell the story on a local cluster: a job grows, gives way, grows back. ONESHOT=1 ends by itself.
	@echo "building the demo (about 2 min the first time)"
	$(call build,demo,./test/demo)
	ONESHOT=$(ONESHOT) exec $(BIN)/demo

.PHONY: demo-readme
demo-readme: ## Tell the story of make demo once, and write README's excerpt of it anew.
	@$(call build,demo,./test/demo)
	exec $(BIN)/demo -oneshot -page=README.md

.PHONY: demo-merge
demo-merge: ## Tell the story of merges: a dozen models, one line, models that stay fresh. ONESHOT=1 ends by itself.
	@echo "building the demo (about 2 min the first time)"
	$(call build,demo,./test/demo)
	ONESHOT=$(ONESHOT) exec $(BIN)/demo merge

.PHONY: demo-report
demo-report: ## Write the cost report of a week that is made up, as page, mail, CSV, JSON and FOCUS, and open the page.
	@$(call build,demo-report,./test/demo/report)
	exec $(BIN)/demo-report

.PHONY: pictures
pictures: ## Write the picture of the console in README anew; needs Chromium.
	@TIDELINE_PICTURES='$(CURDIR)/docs/images' go test -count=1 -run='^TestPictureOfTheConsole$$' ./internal/console

##@ Benchmarks

# The default of SCALE is that of bench-merge, so here only a value that was given counts.
.PHONY: bench bench-many
bench: build ## Compare how fast jobs run and what they cost, and write docs/benchmarks/speed.md: SCALE (500 jobs).
	@$(call build,bench-speed,./test/perf/speed)
	exec $(BIN)/bench-speed $(if $(filter command environment,$(origin SCALE)),-jobs='$(SCALE)') $(speed)

bench-many: build ## Measure what jobs of Tideline cost as more come at once, and write docs/benchmarks/speed.md: SIZES; an hour.
	@$(call build,bench-speed,./test/perf/speed)
	exec $(BIN)/bench-speed -workload=large -jobs='$(SIZES)' $(speed)

speed = -operator='$(BIN)/tideline' -profiles='$(BIN)/profiles' -commit="$$(git describe --always --dirty)"

.PHONY: bench-merge
bench-merge: build ## Compare who starts merges, and write docs/benchmarks/merge.md: SCALE, POOLS, STRATEGIES.
	@$(call build,bench-merge,./test/perf/merge)
	exec $(BIN)/bench-merge -scale='$(SCALE)' -pools='$(POOLS)' -strategies='$(STRATEGIES)' -operator='$(BIN)/tideline' \
		-commit="$$(git describe --always --dirty)"

.PHONY: bench-merge-line
bench-merge-line: ## Compare ways to start merges on few machines, with the real planners, and write docs/benchmarks/merge.md; a quarter of an hour.
	@go run ./test/perf/mergeline -commit="$$(git describe --always --dirty)"

.PHONY: bench-merge-deadlocks
bench-merge-deadlocks: ## Look for deadlocks of merges that go ahead in further runs of bench-merge-line; minutes.
	@go run ./test/perf/mergeline -deadlocks -commit="$$(git describe --always --dirty)"

.PHONY: bench-merge-fewest
bench-merge-fewest: ## Look for the smallest pool that keeps every model fresh, and write docs/benchmarks/merge.md; ten minutes.
	@go run ./test/perf/mergeline -fewest -commit="$$(git describe --always --dirty)"

.PHONY: bench-merge-agreement
bench-merge-agreement: build ## Hold bench-merge-line's simulation to Tideline's line on a cluster; a quarter of an hour.
	@$(call build,bench-merge,./test/perf/merge)
	$(BIN)/bench-merge -scale=150 -pools=12,16 -strategies=tideline -operator='$(BIN)/tideline' -page= \
		-commit="$$(git describe --always --dirty)" >$(BIN)/.agreement
	mv $(BIN)/.agreement docs/benchmarks/merge-cluster.txt
	go run ./test/perf/mergeline -beside=docs/benchmarks/merge-cluster.txt

.PHONY: bench-sizing
bench-sizing: ## Compare what containers should request, and write docs/benchmarks/sizing.md: SEEDS; minutes.
	@exec nice -n 10 go -C test/perf/sizing run . -seeds='$(SEEDS)' -commit="$$(git log -1 --format=%h -- internal/usage test/perf/sizing)" \
		-page='$(CURDIR)/docs/benchmarks/sizing.md'

.PHONY: bench-outcome
bench-outcome: ## Play what docs/benchmarks/outcome.jsonl does not have, and write docs/benchmarks/outcome.md: TRACE, RUNS; an hour for a seed.
	@exec nice -n 10 go run ./test/perf/outcome -trace='$(TRACE)' $(RUNS) \
		-commit="$$(git log -1 --format=%h -- internal/training internal/capacity config/volcano test/perf/outcome test/perf/scheduler)" -page=docs/benchmarks/outcome.md

.PHONY: bench-whatif bench-whatif-stock
bench-whatif: ## Hold answers of tideline whatif to what Volcano's scheduler makes of a change, and write docs/benchmarks/whatif.md: SEEDS=5, TRACE; half an hour a seed.
	@$(whatif) -loads=0.9

bench-whatif-stock: ## The same under the configuration that Volcano ships, with more load.
	@$(whatif) -stock -loads=1.1

whatif = exec nice -n 10 go run ./test/perf/outcome -whatif -trace='$(TRACE)' -days=1 -seeds=$(or $(SEEDS),5) -page=docs/benchmarks/whatif.md \
	-commit="$$(git log -1 --format=%h -- internal/capacity internal/quota config/volcano test/perf/outcome test/perf/scheduler)"

.PHONY: bench-forecast
bench-forecast: ## Hold answers of tideline simulate to when trainings start, where docs/benchmarks/forecast.jsonl does not have the run, and write docs/benchmarks/forecast.md: SEEDS=2, TRACE; half an hour a run.
	@exec nice -n 10 go run ./test/perf/outcome -forecast -trace='$(TRACE)' -days=2 -loads=0.9,1.1 -seeds=$(or $(SEEDS),2) \
		-results=docs/benchmarks/forecast.jsonl -page=docs/benchmarks/forecast.md \
		-commit="$$(git log -1 --format=%h -- internal/training internal/capacity config/volcano test/perf/outcome test/perf/scheduler)"

.PHONY: bench-fragmentation
bench-fragmentation: ## Fill openb's nodes with its pods under two configurations, and write docs/benchmarks/fragmentation.md: OPENB; half an hour.
	@exec nice -n 10 go run ./test/perf/fragmentation -nodes='$(OPENB)/openb_node_list_gpu_node.csv' -pods='$(OPENB)/openb_pod_list_default.csv' \
		-commit="$$(git log -1 --format=%h -- config/volcano test/perf/fragmentation test/perf/scheduler)"

.PHONY: bench-repack
bench-repack: ## Place gangs on openb's nodes at 85 % before and after moves of surplus, and write docs/benchmarks/repack.md: OPENB; a minute.
	@exec nice -n 10 go run ./test/perf/fragmentation -repack -nodes='$(OPENB)/openb_node_list_gpu_node.csv' \
		-pods='$(OPENB)/openb_pod_list_default.csv' -page=docs/benchmarks/repack.md \
		-commit="$$(git log -1 --format=%h -- internal/capacity test/perf/fragmentation)"

.PHONY: bench-console
bench-console: build ## Compare how long reconciles take without and with people who read the console, and write docs/benchmarks/console.md: ROUNDS (4); ten minutes.
	@$(call build,bench-console,./test/perf/console)
	exec $(BIN)/bench-console -rounds='$(ROUNDS)' -operator='$(BIN)/tideline' -commit="$$(git describe --always --dirty)"

.PHONY: bench-growth
bench-growth: ## Compare ways to grow under churn, with the real planners, and write docs/benchmarks/growth.md; minutes.
	@go run ./test/perf/growth -commit="$$(git describe --always --dirty)"

.PHONY: bench-gain
bench-gain: ## Compare ways to divide free room among trainings that scale differently, and write their part of docs/benchmarks/growth.md; a minute.
	@go run ./test/perf/growth -gain -commit="$$(git describe --always --dirty)"

.PHONY: bench-giveway
bench-giveway: ## Compare Volcano's pairs of actions that evict, and write the table of decision 0013: TRIALS (60); half an hour.
	@TIDELINE_GIVEWAY_TRIALS='$(TRIALS)' TIDELINE_GIVEWAY_PAGE='$(CURDIR)/docs/decisions/0013-volcano-configuration.md' \
		TIDELINE_GIVEWAY_COMMIT="$$(git describe --always --dirty)" \
		exec go test -count=1 -timeout=4h -v -run='^TestGiveWay$$' ./test/perf/giveway

##@ Local cluster

.PHONY: $(BIN)/localcluster
$(BIN)/localcluster:
	@$(call build,localcluster,./test/cluster/cmd/localcluster)

.PHONY: cluster-up
cluster-up: $(BIN)/localcluster ## Start a local cluster: GPU_NODES, GPUS_PER_NODE, CLUSTER_KUBECONFIG, AUDIT_LOG, OBJECT_STORE.
	@exec $(BIN)/localcluster up --gpu-nodes=$(GPU_NODES) --gpus-per-node=$(GPUS_PER_NODE) \
		$(if $(CLUSTER_KUBECONFIG),--kubeconfig='$(CLUSTER_KUBECONFIG)') $(if $(AUDIT_LOG),--audit-log='$(AUDIT_LOG)') \
		$(if $(OBJECT_STORE),--object-store)

.PHONY: cluster-down
cluster-down: $(BIN)/localcluster ## End the local cluster of CLUSTER_KUBECONFIG.
	@exec $(BIN)/localcluster down $(if $(CLUSTER_KUBECONFIG),--kubeconfig='$(CLUSTER_KUBECONFIG)')

##@ Cluster of KUBECONFIG

.PHONY: install
install: ## Install the CRDs, the tiers' PriorityClasses and the pool of merges.
	@$(find_kubectl)
	kustomize=$$($(TOOL) kustomize)
	{ "$$kustomize" build config/crd; echo ---; "$$kustomize" build config/scheduling; } | "$$kubectl" $(KUBECTL_APPLY)
	"$$kustomize" build config/crd | "$$kubectl" wait --for=condition=Established --timeout=60s -f - >/dev/null
	if $(serves_queues); then
		"$$kustomize" build config/pool | "$$kubectl" $(KUBECTL_APPLY)
	else
		echo "not installed: Queue tideline-merge, the pool of merges, because the cluster serves no Queues: install Volcano, then" \
			"run make install again"
	fi

.PHONY: uninstall
uninstall: ## Delete every job, merge and profile, the CRDs, the PriorityClasses and the pool of merges.
	@$(find_kubectl)
	kustomize=$$($(TOOL) kustomize)
	$(delete_all)
	if $(serves_queues); then
		"$$kustomize" build config/pool | "$$kubectl" $(KUBECTL_DELETE)
	fi
	{ "$$kustomize" build config/crd; echo ---; "$$kustomize" build config/scheduling; } | "$$kubectl" $(KUBECTL_DELETE)

.PHONY: deploy
deploy: ## Install everything and run the operator of image IMG in the cluster.
	@$(find_kubectl)
	kustomize=$$($(TOOL) kustomize)
	"$$kustomize" build config/default | sed 's|image: tideline:latest|image: $(IMG)|' | "$$kubectl" $(KUBECTL_APPLY)

.PHONY: undeploy
undeploy: ## Delete every job, merge and profile, and what deploy installed.
	@$(find_kubectl)
	kustomize=$$($(TOOL) kustomize)
	$(delete_all)
	"$$kustomize" build config/default | "$$kubectl" $(KUBECTL_DELETE)
