# fuseboard: `make run` shows the board on demo data, `make test` runs the tests.
# Both do all their own set-up in .venv; PYTHON=/path/to/python chooses the interpreter.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
SETUP := PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup.sh
PYTEST_ARGS ?=
# Tests of one file stay in one process, so that they share the servers they start.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
SYSTEM_PACKAGES := chromium prometheus prometheus-alertmanager redis-server libjemalloc2 nginx-light
PACKAGES := instrumentation collector dashboard alerts grafana server
CHECKED := $(PACKAGES) $(wildcard tests benchmarks examples scripts)

.PHONY: help run test test-all adapters check format bench bench-store bench-pages screenshots texts constraints clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the server and a demo agent; ARGS="--ui-port 0" and the like go to the demo
	@$(SETUP) demo
	@exec $(BIN)/fuseboard demo $(ARGS)

test: ## Run every test but the long ones (under 20 minutes on 2 cores; WORKERS=2 processes)
	@$(SETUP) dev
	@sh scripts/system_packages.sh $(SYSTEM_PACKAGES)
	$(PYTEST) -m "not long" $(PYTEST_ARGS)

test-all: ## Run every test, the long ones too (needs under 60 minutes)
	@$(SETUP) dev
	@sh scripts/system_packages.sh $(SYSTEM_PACKAGES)
	$(PYTEST) $(PYTEST_ARGS)

adapters: ## Run the tests of adapters, each in its own environment; ARGS="langchain" for one
	@$(SETUP) dev
	@$(BIN)/python scripts/adapter_environments.py $(ARGS)

check: ## Lint, check the format, the types and the direction of imports
	@$(SETUP) dev
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: ## Format the code and fix what the linter can fix
	@$(SETUP) dev
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

bench: ## Measure what a tool call costs and what the collector takes in; fails on a missed bar
	@$(SETUP) dev
	@sh scripts/system_packages.sh libjemalloc2
	@missed=0; for file in import_time call_overhead with_export timeouts collector_away ingest what_changed; do \
	  echo "== $$file"; $(BIN)/python benchmarks/$$file.py $(ARGS) || missed=1; done; exit $$missed

bench-store: ## Measure the dashboard's queries on 10 million calls; ARGS="--calls 100000000" for more
	@$(SETUP) dev
	@sh scripts/system_packages.sh libjemalloc2
	$(BIN)/python benchmarks/store.py $(ARGS)

bench-pages: ## Measure pages in Chromium on 10 million calls, against two lines of Streamlit
	@$(SETUP) dev
	@sh scripts/system_packages.sh chromium libjemalloc2
	$(BIN)/python benchmarks/pages.py $(ARGS)

screenshots: ## Photograph every page of the dashboard on demo data and without any
	@$(SETUP) dev
	@sh scripts/system_packages.sh chromium fonts-wqy-zenhei
	$(BIN)/python scripts/screenshots.py $(ARGS)

texts: ## Bring the dashboard's catalogues in line with its source; say what has no translation
	@$(SETUP) dev
	@$(BIN)/python scripts/texts.py $(ARGS)

constraints: ## Pin what .venv holds now in constraints.txt
	@$(SETUP) dev
	$(BIN)/python scripts/pin.py > constraints.txt.new
	mv constraints.txt.new constraints.txt

clean: ## Remove everything that the other targets made
	rm -rf $(VENV) .venv-adapters build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +
