# The one list of commands. `make bench` and `make test` need a Python >= 3.11, a Rust toolchain, a C
# compiler and make; they set up everything else, in .venv and target.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INTERPOSER := tests/faults/interposer/Cargo.toml
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

.DEFAULT_GOAL := help
.PHONY: help prerequisites setup build builds test test-rust test-python test-interpreters test-cpython test-upstream test-django bench oha fuzz faults crash loom asan lint fmt clean soak kills

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

prerequisites:
	@PYTHON=$(PYTHON) scripts/prerequisites.sh

$(VENV)/.ready: pyproject.toml | prerequisites
	@echo "Setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --upgrade pip
	@$(BIN)/python -m pip install --group dev --group peers
	@scripts/browser.sh $(BIN)
	@touch $@

setup: $(VENV)/.ready ## Create .venv with everything the project needs

build: setup ## Build the package in release mode into .venv
	@echo "Building (the first time SQLite is compiled too: a minute or two)"
	@scripts/quietly.sh target/build.log $(BIN)/maturin develop --release --extras cli

builds: setup ## Build the two other compilations of the same SQLite, for the lab's `build` axis
	@scripts/builds.sh stock seed

bench: build oha ## Set up, build, and run the lab's quick selection (five minutes): ends with the report's path
	@$(BIN)/oxlite bench all --quick --again --results target/bench

oha: setup ## Install the load generator of `oxlite bench web` into .venv (minutes)
	@scripts/oha.sh $(VENV)

test: test-rust test-python test-interpreters ## Set up, build, and run every test

test-rust: prerequisites
	cargo test --quiet

test-python: build oha
	$(BIN)/python -m pytest

test-interpreters: build
	@scripts/test_interpreters.sh

test-cpython: build ## Run CPython's own tests of sqlite3 on Oxlite, on every Python here
	@scripts/test_interpreters.sh cpython

test-upstream: build ## Run SQLAlchemy's whole tree of tests on both drivers and compare: WORKERS=2 TESTS= EVIDENCE=
	@$(BIN)/python tests/upstream/sqlalchemy/tree.py $(if $(WORKERS),--workers $(WORKERS)) $(if $(EVIDENCE),--evidence $(EVIDENCE)) $(TESTS)

test-django: build ## Run Django's whole tree of tests on both backends and compare: WORKERS=2 LABELS= EVIDENCE=
	@$(BIN)/python tests/upstream/django/tree.py $(if $(WORKERS),--workers $(WORKERS)) $(if $(EVIDENCE),--evidence $(EVIDENCE)) $(LABELS)

fuzz: build ## Compare the driver with the standard library's on random scripts: MINUTES=1 SEED= WORKERS=1
	@$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),1) --workers $(or $(WORKERS),1) $(if $(SEED),--seed $(SEED))

faults: build ## Refuse memory and fail system calls at every place of a session: WORKERS=
	@$(BIN)/python -m tests.faults $(if $(WORKERS),--workers $(WORKERS)) $(if $(CHAPTER),--chapter "$(CHAPTER)")

crash: build ## Cut the power at every moment of recorded workloads: IMAGES=100000 SEED= WORKERS= PLACES=
	@$(BIN)/python -m tests.crash $(if $(IMAGES),--images $(IMAGES)) $(if $(SEED),--seed $(SEED)) $(if $(WORKERS),--workers $(WORKERS)) $(if $(PLACES),--places $(PLACES))
soak: build ## Write for long beside readers of all kinds, and see how long the log becomes: MINUTES=10
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),10)

kills: build ## Kill all who share their syncs, again and again, and begin anew: KILLS=5000 SEED=
	@$(BIN)/python -m tests.kills $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

loom: prerequisites ## Explore all orders in which threads can meet where they wait for one another (minutes)
	RUSTFLAGS="--cfg loom" cargo test --quiet --release --package oxlite-sqlite --package oxlite-core --lib \
		--target-dir target/loom model:: -- --nocapture

asan: build ## Run the driver's tests and a selection of faults under AddressSanitizer (nightly Rust, gcc)
	@scripts/asan.sh $(TESTS)

lint: build ## Check formatting, lints and types
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo fmt --check --manifest-path $(INTERPOSER)
	cargo clippy --quiet --manifest-path $(INTERPOSER) --target-dir target/faults -- -D warnings
	$(BIN)/ruff format --check python tests scripts examples
	$(BIN)/ruff check python tests scripts examples
	$(BIN)/mypy

fmt: setup ## Format everything
	cargo fmt
	cargo fmt --manifest-path $(INTERPOSER)
	$(BIN)/ruff format python tests scripts examples
	$(BIN)/ruff check --fix-only --quiet python tests scripts examples

clean: ## Remove what was built
	rm -rf target dist $(VENV) .venvs python/oxlite/_native.*.so python/oxlite/bench/builds/*/
