SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
TIMEOUT ?= 60m
# What make test tests.
PKGS ?= ./...
FUZZTIME ?= 1m
# A semantic version whether or not there is a tag, or even a git repository.
VERSION ?= $(shell git describe --tags --dirty --match='v[0-9]*' 2>/dev/null \
	|| echo v0.0.0+$$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown))

# kubectl of deploy and undeploy, with flags if need be: KUBECTL="kubectl --context staging".
KUBECTL ?= kubectl
# A folder in manifests/overlays, or a path with a slash.
OVERLAY ?= embedded
PLATFORMS ?= linux/amd64,linux/arm64
# Where vulncheck looks; another server or a file:// folder where that cannot be reached.
VULNDB ?= https://vuln.go.dev

TOOL := $(GO) tool -modfile=test/harness/tools/go.mod
LDFLAGS := -X warmpool.sh/webhook/version.number=$(VERSION)

.PHONY: help build run test e2e reliability proof lint bench fuzz docs image push digests deploy undeploy sbom vulncheck clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/warmpool
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/warmpool ./cmd/warmpool

run: ## Try warmpool on a real API server; ONCE=1 ends after the tour, FULL=1 runs pods too
	$(GO) build -o bin/tour ./test/integration/tour
	@exec bin/tour $(if $(ONCE),-once) $(if $(FULL),-full)

# Runs the go test commands in $(1) and then says which tests were skipped, and why; see test/harness/needs. Without debugging
# information (-w) the many large test programs link in two thirds of the time.
define tested
	@$(GO) run ./test/harness/controlplane/prepare
	@skipped=$$(mktemp); trap 'rm -f "$$skipped"' EXIT; failed=0; export WARMPOOL_SKIPPED=$$skipped; set -x; \
		{ $(1); } || failed=$$?; \
		{ set +x; } 2>/dev/null; $(GO) run ./test/harness/needs/report "$$skipped"; exit "$$failed"
endef

test: ## Run all tests, of PKGS=./... only; RACE=1 looks for data races
	$(call tested,$(GO) test -ldflags=-w $(if $(RACE),-race) -timeout $(TIMEOUT) $(PKGS))

# Longest first: go test starts packages in this order, and so the last ones end together. Days are for make proof.
e2e: ## Run only the tests that need more than an API server: controllers, scheduler, nodes
	$(call tested,$(e2e) ./test/harness/controlplane ./test/e2e/scheduler ./test/integration/tour ./test/integration/imagesync \
		./test/integration/deploy ./test/proof/realnodes \
		&& $(e2e) ./test/integration/cel ./test/e2e/scenarios ./test/integration/faults ./test/e2e/warmfirst ./test/e2e/warmth -long)

e2e = $(GO) test -count=1 -vet=off -ldflags=-w $(if $(RACE),-race) -timeout $(TIMEOUT)

reliability: ## Create pods while one thing after another fails, and write what became of them to docs/evidence/reliability.md
	$(GO) test -timeout $(TIMEOUT) ./test/integration/faults -update
	$(GO) test -timeout $(TIMEOUT) ./test/integration/attacks -update

proof: ## Run a working day without a warm pool, with one by hand, and with warmpool, and write docs/proof.*; SOAK=30m runs days for so long
	@mkdir -p bin
	$(GO) test -count=1 -timeout $(TIMEOUT) ./test/proof/realnodes -figures='$(CURDIR)/bin/real-nodes.json'
	$(GO) test -count=1 -timeout $(TIMEOUT) ./test/proof/day -update -real='$(CURDIR)/bin/real-nodes.json'
	$(if $(SOAK),$(GO) test -count=1 -timeout 120m ./test/proof/day -soak=$(SOAK))

lint: ## Run the linters and check that the go.mod files are tidy
	$(GO) mod tidy -diff
	$(GO) -C test/harness/tools mod tidy -diff
	$(GO) -C test/harness/monitoring mod tidy -diff
	$(GO) -C test/harness/browser mod tidy -diff
	$(GO) -C test/harness/kustomize mod tidy -diff
	$(GO) -C test/harness/kustomize mod tidy -modfile=go-kubectl-1.32.mod -diff
	$(GO) -C test/harness/helm mod tidy -diff
	$(GO) -C test/harness/plot mod tidy -diff
	$(TOOL) golangci-lint run --allow-parallel-runners ./...

bench: ## Measure handlers, creations of pods, image sync, audits and memory, and write docs/evidence/performance.md
	$(GO) run ./test/bench/report

# Minimizing each interesting input would take most of the time.
fuzz: ## Run each fuzz target for FUZZTIME=1m
	@grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | LC_ALL=C sort | while IFS=: read -r file func; do \
		echo "== $${file%/*} $${func#func }"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$${file%/*}" </dev/null || exit 1; \
	done

docs: ## Write the generated parts of docs and manifests/chart anew
	$(GO) test ./cmd/warmpool -run '^(TestRuleTable|TestPagesShowOutput)$$' -update
	$(GO) test ./docs -run '^(TestConfigurationReference|TestRulePages)$$' -update
	$(GO) test ./test/harness/chart -update

image: ## Build the image IMG for this machine
	docker build --build-arg VERSION=$(VERSION) -t $(call needed,IMG) .

push: ## Build the image IMG for PLATFORMS and push it
	docker buildx build --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) -t $(call needed,IMG) --push .

digests: ## Pin the images of manifests/base, and IMG where it is set, by the digests that their tags have now; needs the network
	CRANE='$(TOOL) crane' manifests/digests.sh $(if $(IMG),'$(IMG)')

deploy: ## Install OVERLAY=embedded with the image IMG, by KUBECTL; or bring what is there up to date
	KUBECTL='$(KUBECTL)' manifests/install.sh deploy '$(OVERLAY)' '$(call needed,IMG)'

undeploy: ## Take out what deploy has installed, the webhooks first; Workspaces and what is others' stays
	KUBECTL='$(KUBECTL)' manifests/install.sh undeploy '$(OVERLAY)'

sbom: ## Write bin/warmpool.cdx.json, the modules and licences that are in bin/warmpool, as CycloneDX
	@mkdir -p bin
	$(TOOL) cyclonedx-gomod app -json -licenses -packages=false -main cmd/warmpool -output bin/warmpool.cdx.json .

vulncheck: ## Look for known vulnerabilities that warmpool's code reaches; needs the network
	@$(TOOL) govulncheck -db $(VULNDB) ./cmd/... || { \
		echo "make vulncheck: see above. Where $(VULNDB) cannot be reached nothing was checked: set VULNDB" >&2; exit 1; }

needed = $(or $($(1)),$(error set $(1), such as $(1)=registry.example/warmpool:v0.1.0))

clean: ## Remove what the other targets made
	rm -rf bin
