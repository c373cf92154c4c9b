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
PYTEST := scripts/second_chance.sh $(BIN)/python -m pytest
# Two processes for each processor, since many tests wait. Each begins with a part of its own, in which the tests
# of a file share what is dear to make; who has done his part takes from the others.
QUICKLY := --numprocesses $(or $(shell nproc 2>/dev/null | awk '{ print ($$1 < 4 ? $$1 * 2 : 8) }'),4) --dist worksteal
# One process for each processor: these measure, build and serve. A file's tests stay together.
SLOWLY := --numprocesses logical --maxprocesses 8 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help prerequisites setup build builds test test-all test-rest test-rust test-quick test-slow test-interpreters test-cpython test-upstream test-django bench browser oha fuzz faults crash loom asan lint fmt clean soak kills notify-kills cable-kills cache-kills tasks-kills backup-kills replica-kills replica-soak promote-kills promote-speed cache-images cache-soak mutants nginx site site-serve pythons wheels

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

prerequisites:
	@PYTHON=$(PYTHON) scripts/prerequisites.sh

$(VENV)/.ready: pyproject.toml | prerequisites
	@echo "Setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --upgrade pip
	@$(BIN)/python -m pip install --group dev --group peers --group site
	@touch $@

setup: $(VENV)/.ready ## Create .venv with everything the project needs

build: setup ## Build the package in release mode into .venv
	@echo "Building (the first time SQLite is compiled too: a minute or two)"
	@scripts/quietly.sh target/build.log $(BIN)/maturin develop --release --extras cli

builds: setup ## Build the two other compilations of the same SQLite, for the lab's `build` axis
	@scripts/builds.sh stock seed

bench: ## Set up, build, and run the lab's quick selection (minutes): ends with its verdict and the report's path
	@$(MAKE) --no-print-directory --jobs=2 build oha
	@$(BIN)/oxlite bench all --quick --again --results target/bench

browser: setup ## Install a Chromium for the slow tests that open the lab's report, if there is none
	@scripts/browser.sh $(BIN)

nginx: ## Install an nginx for the pages that put one before an application, if there is none (as root)
	@scripts/nginx.sh

oha: target/tools/bin/oha setup ## Install the load generator of `oxlite bench web` into .venv (minutes)
	@cp $< $(BIN)/

# Needs nothing of .venv, so that it is compiled while that is filled.
target/tools/bin/oha: | prerequisites
	@scripts/oha.sh target/tools

test: test-rust test-quick ## Set up, build, and test what a change is likely to break (minutes)
	@echo "Left out, and run by 'make test-all': the tests marked slow, the other interpreters, CPython's own tests"

test-all: test test-rest ## The same, and every other test: slow ones, other interpreters, upstream selections

test-rest: test-slow test-interpreters ## What 'make test' leaves out of 'make test-all'
	@echo "Left out, each a command of its own: fuzz faults crash soak kills notify-kills cable-kills cache-kills tasks-kills backup-kills replica-kills replica-soak promote-kills promote-speed cache-images cache-soak loom asan test-upstream test-django"

test-rust: prerequisites
	cargo test --quiet

test-quick: build
	$(PYTEST) $(QUICKLY) -m "not slow"

test-slow:
	@$(MAKE) --no-print-directory --jobs=2 build oha browser nginx
	$(PYTEST) $(SLOWLY) -m slow

test-interpreters: build ## Run the driver's tests, and others, on every supported Python
	@$(MAKE) --no-print-directory pythons || echo "Not every Python can be had here"
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
soak: build ## Write for long beside readers of all kinds, and see how large the WAL becomes: MINUTES=10
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),10)

kills: build ## Kill all who share their syncs, again and again, and begin anew: KILLS=5000 SEED=
	@$(BIN)/python -m tests.kills $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

notify-kills: build ## Kill those who notify and those who listen, and see that nothing is lost: KILLS=2000 NOTIFICATIONS=1000000 SEED=
	@$(BIN)/python -m tests.notify_kills $(if $(KILLS),--kills $(KILLS)) $(if $(NOTIFICATIONS),--notifications $(NOTIFICATIONS)) $(if $(SEED),--seed $(SEED))

cable-kills: build ## Kill those who send to a group and those who are in it, and see that nobody else loses a message: KILLS=1000 SEED=
	@$(BIN)/python -m tests.cable_kills $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

cache-kills: build ## Kill those who use a cache in the midst of it, and see that what was acknowledged is there: KILLS=5000 SEED=
	@$(BIN)/python -m tests.cache_kills $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

tasks-kills: build ## Kill those who enqueue tasks and those who run them, and see that none is lost or done twice: KILLS=10000 TASKS=1000000 SEED= ENDS=0
	@$(BIN)/python -m tests.tasks_kills $(if $(KILLS),--kills $(KILLS)) $(if $(TASKS),--tasks $(TASKS)) $(if $(ENDS),--ends $(ENDS)) $(if $(SEED),--seed $(SEED))

backup-kills: build ## Kill those who write, back up and restore, and see that each backup is a prefix of what was acknowledged: CYCLES=2000 SEED=
	@$(BIN)/python -m tests.backup_kills $(if $(CYCLES),--cycles $(CYCLES)) $(if $(SEED),--seed $(SEED))

replica-kills: build ## Kill all who write and replicate, and see that each replica is a prefix of what was acknowledged: CYCLES=1000 SEED=
	@$(BIN)/python -m tests.replica_kills $(if $(CYCLES),--cycles $(CYCLES)) $(if $(SEED),--seed $(SEED))

promote-kills: build ## Kill promotions to PostgreSQL on either side while others write, and see that each row arrives once: CYCLES=100 ROWS=20000 SEED=
	@$(BIN)/python -m tests.promote_kills $(if $(CYCLES),--cycles $(CYCLES)) $(if $(ROWS),--rows $(ROWS)) $(if $(SEED),--seed $(SEED))

promote-speed: build ## Promote a large file, beside COPY by hand and pgloader (if it is installed), and cut over while others write: MEGABYTES=1024 ROUNDS=3 CUT_OVERS=3
	@$(BIN)/python -m tests.promote_speed $(if $(MEGABYTES),--megabytes $(MEGABYTES)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(CUT_OVERS),--cut-overs $(CUT_OVERS))

replica-soak: build ## Write at half and at full load, without and with replication, and see what it costs and how large the WAL becomes: MINUTES=30
	@$(BIN)/python -m tests.replica_soak $(if $(MINUTES),--minutes $(MINUTES))

cache-images: build ## Cut the power at every moment of recorded work on a cache: IMAGES=100000 SEED= WORKERS=
	@$(BIN)/python -m tests.cache_images $(if $(IMAGES),--images $(IMAGES)) $(if $(SEED),--seed $(SEED)) $(if $(WORKERS),--workers $(WORKERS))

cache-soak: build ## Set values for long, and see that a cache keeps its limit: SETS=10000000 SEED=
	@$(BIN)/python -m tests.cache_soak $(if $(SETS),--sets $(SETS)) $(if $(SEED),--seed $(SEED))

mutants: setup ## Make deliberate mistakes, each of which the tests of its area must find: NAMES= (areas) EVIDENCE=
	@$(BIN)/python -m tests.mutants $(if $(EVIDENCE),--evidence $(EVIDENCE)) $(NAMES)

loom: prerequisites ## Explore all orders in which threads can meet where they wait for one another (minutes)
	RUSTFLAGS="--cfg loom" cargo test --quiet --release --package oxlite-sqlite --package oxlite-core --lib \
		--target-dir target/loom model:: -- --nocapture

asan: build ## Run the driver's tests and a selection of faults under AddressSanitizer (nightly Rust, gcc)
	@scripts/asan.sh $(TESTS)

# Needs nothing of .venv, as oha.
target/tools/bin/cargo-deny: | prerequisites
	@scripts/deny.sh target/tools

.PHONY: audit
audit: build target/tools/bin/cargo-deny ## Ask the databases of vulnerabilities about all that is used (network)
	@$(BIN)/python scripts/advisories.py target/tools/bin/cargo-deny

lint: build target/tools/bin/cargo-deny ## Check formatting, lints, types, licences of what is linked, and workflows
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo fmt --check --manifest-path $(INTERPOSER)
	cargo clippy --quiet --manifest-path $(INTERPOSER) --target-dir target/faults -- -D warnings
	$(BIN)/ruff format --check python tests scripts examples build_backend
	$(BIN)/ruff check python tests scripts examples build_backend
	$(BIN)/mypy
	MYPYPATH=python:. $(BIN)/mypy --explicit-package-bases scripts/site/*.py
	target/tools/bin/cargo-deny --locked --log-level error check bans licenses sources
	$(BIN)/zizmor --quiet --offline --strict-collection .github

site: build ## Build the documentation into target/site: a broken link or a page in no menu is an error
	@NO_MKDOCS_2_WARNING=1 scripts/quietly.sh target/site.log $(BIN)/python -m mkdocs build --strict
	@echo "The site: target/site ('make site-serve' shows it, with its search)"

site-serve: site ## Build the documentation and show it in a browser: PORT=8000
	@echo "http://127.0.0.1:$(or $(PORT),8000)/ until Ctrl-C"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory target/site $(or $(PORT),8000) 2>/dev/null

# Apart from .venv: it needs nothing that the tests need, and they nothing of it.
.venvs/wheels/.ready: pyproject.toml | prerequisites
	@echo "Setting up .venvs/wheels"
	@$(PYTHON) -m venv .venvs/wheels
	@.venvs/wheels/bin/python -m pip install --upgrade pip
	@.venvs/wheels/bin/python -m pip install --group wheels
	@touch $@

pythons: .venvs/wheels/.ready ## Put the supported Pythons that this machine lacks into a cache: PYTHONS="3.14 3.15"
	@.venvs/wheels/bin/python scripts/pythons.py $(PYTHONS)

wheels: .venvs/wheels/.ready ## Build the wheels of a release into dist, and try each: ONLY="--python 3.14 --target x86_64-musl" EVIDENCE=
	@.venvs/wheels/bin/python scripts/wheels.py $(ONLY) $(if $(EVIDENCE),--evidence $(EVIDENCE))

.PHONY: sdist
sdist: .venvs/wheels/.ready ## Build the source archive of the commit into dist: the same bytes wherever it is built
	@MATURIN=.venvs/wheels/bin/maturin scripts/sdist.sh dist

fmt: setup ## Format everything
	cargo fmt
	cargo fmt --manifest-path $(INTERPOSER)
	$(BIN)/ruff format python tests scripts examples build_backend
	$(BIN)/ruff check --fix-only --quiet python tests scripts examples build_backend

clean: ## Remove what was built
	rm -rf target dist $(VENV) .venvs python/oxlite/_native.*.so python/oxlite/bench/builds/*/
