# Needs Go, gcc (for the race detector) and make. All other tools are built from
# tools/go.mod, once, into a cache that the user's checkouts share.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build
.NOTPARALLEL:

# A checkout that another user owns must build too; git would refuse to describe it.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

GO ?= go
SOAK ?= 10m

# A change of the tools' versions, of our own generators or of Go gives a new folder.
TOOLS_SOURCES := tools/go.mod tools/go.sum $(sort $(wildcard tools/*/*.go))
TOOLS_HASH := $(shell { $(GO) env GOVERSION; cat $(TOOLS_SOURCES); } | sha256sum | cut -c1-16)
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/holdfast/tools/$(TOOLS_HASH)

GENERATORS := $(addprefix $(TOOLS)/,protogen protoc-gen-gogofaster protoc-gen-go-grpc protoc-gen-holdfast)
PROTOGEN = $(TOOLS)/protogen -root . -plugins $(TOOLS)
UNIT = $$($(GO) list ./... | grep -v '^holdfast/test\(/\|$$\)')

.PHONY: build
build: ## Build bin/managerd and bin/ctl.
	@mkdir -p bin
	$(GO) build -trimpath -o bin/ ./cmd/managerd ./cmd/ctl

.PHONY: generate
generate: $(GENERATORS) ## Generate the code of api/ from its .proto files.
	$(PROTOGEN)

.PHONY: check-generate
check-generate: $(GENERATORS) ## Fail if the code of api/ is not what would be generated.
	$(PROTOGEN) -check

.PHONY: fmt
fmt: $(TOOLS)/gofumpt ## Format the Go code.
	$(TOOLS)/gofumpt -w .

.PHONY: check-fmt
check-fmt: $(TOOLS)/gofumpt ## Fail if Go code is not formatted.
	@files=$$($(TOOLS)/gofumpt -l .); \
	if [ -n "$$files" ]; then echo "not formatted; run make fmt:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## Run go vet.
	$(GO) vet ./...
	$(GO) vet -tags mutants ./...
	$(GO) -C tools vet ./...
	$(GO) -C contrib/helm vet ./...

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Run the linters. Building them takes minutes, the first time.
	$(TOOLS)/golangci-lint run ./...
	$(TOOLS)/golangci-lint run --build-tags mutants ./internal/mutant ./test/sim
	cd tools && $(TOOLS)/golangci-lint run --config ../.golangci.yml ./...
	cd contrib/helm && $(TOOLS)/golangci-lint run --config ../../.golangci.yml ./...

.PHONY: unit
unit: postgres ## Run all tests but those of test/, with the race detector; contrib's without.
	$(GO) test -race $(UNIT)
	$(GO) -C contrib/helm test ./...

.PHONY: postgres
postgres: ## Install PostgreSQL for the tests that start one, if it is missing and may be.
	@./scripts/postgres

.PHONY: integration
integration: ## Run the tests of test/: real processes, the simulator and a few mutants; short.
	$(GO) test -count=1 -short ./test/... # Go's cache does not see the binaries that they start
	$(GO) test -short -tags mutants -run TestMutants ./internal/mutant ./test/sim

.PHONY: test
test: check-generate check-fmt vet lint unit integration ## Run all that CI runs.

.PHONY: sim
sim: ## Run the simulator for about six minutes.
	./scripts/sim

.PHONY: mutants
mutants: ## Plant each of the known faults, and see that the simulator catches it.
	$(GO) test -tags mutants -count=1 -timeout 0 -run TestMutants -v ./test/sim | grep -v '^=== \|^ *--- PASS\|^PASS\|^ok'

.PHONY: demo
demo: build ## Show a cluster at work.
	./scripts/demo

.PHONY: soak
soak: ## Run the tests of test/ for SOAK (10m) each, looking for rare faults.
	HOLDFAST_SOAK=$(SOAK) $(GO) test -count=1 -timeout 0 -v $$($(GO) list ./test/... | grep -v /sim$$)
	SIM_TIME=$(SOAK) ./scripts/sim

.PHONY: bench
bench: ## Run the benchmarks.
	$(GO) test -run '^$$' -bench . -benchmem $(UNIT)
	@if [ -f bench/go.mod ]; then set -x; $(GO) -C bench test -run '^$$' -bench . -benchmem ./...; fi

.PHONY: clean
clean: ## Remove what was built; the tools stay.
	rm -rf bin dist

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Import paths of the tools that are not our own.
protoc-gen-gogofaster.path := github.com/gogo/protobuf/protoc-gen-gogofaster
protoc-gen-go-grpc.path := google.golang.org/grpc/cmd/protoc-gen-go-grpc
golangci-lint.path := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
gofumpt.path := mvdan.cc/gofumpt

# Renamed when complete, so that one that was interrupted or is built twice does no harm.
$(TOOLS)/%:
	@echo "building $*"; mkdir -p $(TOOLS); tmp=$@.$$$$.tmp; trap 'rm -f $$tmp' EXIT; \
	$(GO) build -C tools -trimpath -o $$tmp $(or $($*.path),holdfast/tools/$*); \
	mv $$tmp $@
