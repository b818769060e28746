# `make demo` shows everything, `make test` checks everything. Each target makes .venv first when it is not there.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV  := .venv/bin
BED   := $(VENV)/python -m tests.testbed
PYTEST := $(VENV)/python -m pytest

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/ready: pyproject.toml constraints.txt scripts/environment.sh
	@scripts/environment.sh

.PHONY: env
env: .venv/ready  ## the Python environment: .venv/bin/gradferry

.PHONY: demo
demo: .venv/ready  ## three hosts, a WAN between them, train, redeploy, tear down; ends with a picture
	@$(BED) demo

.PHONY: up
up: .venv/ready  ## the same three hosts to play with by hand; writes inventory.local.ini
	@$(BED) up

.PHONY: down
down: .venv/ready  ## take the hosts of `make up` away
	@$(BED) down

.PHONY: clean
clean: .venv/ready  ## remove every container, network, volume, image and cache that this clone made; your runs stay
	@$(BED) clean
	@rm -rf .cache artifacts/demo artifacts/bench .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.PHONY: test
test: lint test-fast test-hosts  ## everything but test-slow

.PHONY: test-fast
test-fast: .venv/ready  ## what needs no Docker: units, templates, contracts
	@$(PYTEST) -q -n 2 --dist loadfile -m "not docker and not slow"

.PHONY: test-slow
test-slow: .venv/ready  ## long explorations of the fleet's core; not part of `make test`
	@$(PYTEST) -v -m "slow"

.PHONY: test-hosts
test-hosts: .venv/ready  ## roles and whole clusters on local containers
	@$(BED) engine
	@$(PYTEST) -v -m "docker and not slow" --timeout 1200

.venv/bench: .venv/ready
	@$(VENV)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

.PHONY: bench-accumulation
bench-accumulation: .venv/bench  ## our loop beside a bare one, Accelerate and Fabric -> artifacts/bench/accumulation.json
	@$(VENV)/python -m bench.accumulation

.PHONY: lint
lint: .venv/ready  ## ruff, mypy, import-linter, ansible-lint, yamllint, shellcheck
	@$(VENV)/ruff check .
	@$(VENV)/ruff format --check .
	@$(VENV)/mypy
	@$(VENV)/lint-imports --no-logo
	@$(VENV)/yamllint --strict .
	@cd ansible && ../$(VENV)/ansible-lint --offline -q
	@if command -v shellcheck >/dev/null; then git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck; else echo "shellcheck is not installed: skipped"; fi
