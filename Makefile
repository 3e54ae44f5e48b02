# `make demo` and `make test` need nothing but Python 3.11+ and make: the rest sets itself up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools
CACHES := $(VENV)/.prepared
KAFKA := $(VENV)/.kafka
CATALOG := $(VENV)/.catalog
BROWSER := $(VENV)/.browser
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format docs bench campaign clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(CACHES)  ## make the virtual environment, find or install Java 17+, and make caches for quick starts

$(CACHES): $(STAMP)
	@home="$$(scripts/setup-java.sh)" && JAVA_HOME="$$home" $(BIN)/sash prepare
	@touch $@

$(STAMP): pyproject.toml scripts/setup-python.sh
	@scripts/setup-python.sh "$(PYTHON)" "$(VENV)"
	@echo "sash: installing into $(VENV); this takes a minute or two, once" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[console,postgres]'
	@touch $@

$(TOOLS): $(STAMP)
	@echo "sash: installing what tests, checks and documentation need" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[test]'
	@touch $@

# Without Maven, or where it reaches nothing, the tests with a Kafka broker are skipped.
$(KAFKA): $(STAMP) scripts/setup-kafka.sh
	@scripts/setup-kafka.sh $(VENV)/kafka || echo "sash: tests with a Kafka broker will be skipped" >&2
	@touch $@

# Likewise the tests with a catalog whose tables MERGE INTO supports.
$(CATALOG): $(STAMP) scripts/setup-catalog.sh
	@scripts/setup-catalog.sh $(VENV)/catalog || echo "sash: tests with a table that can be merged into will be skipped" >&2
	@touch $@

# Where Chromium cannot be had, the tests of the web console in a browser are skipped.
$(BROWSER): $(STAMP) scripts/setup-chromium.sh
	@scripts/setup-chromium.sh >/dev/null || echo "sash: tests in a browser will be skipped" >&2
	@touch $@

demo: setup  ## a story of about a minute: sliding windows, an alert on absence, a driver that is killed (ARGS="--plain": lines)
	@export JAVA_HOME="$$(scripts/setup-java.sh)" && $(BIN)/sash demo $(ARGS)

test: setup $(TOOLS) $(KAFKA) $(CATALOG) $(BROWSER)  ## all tests, two at a time: those without Spark, then those with, even if the first half fails (ARGS="tests/sql": just some)
	@export JAVA_HOME="$$(scripts/setup-java.sh)" && if [ -n "$(ARGS)" ]; then $(BIN)/python -m pytest $(ARGS); else \
	failed=0; for half in "not spark" spark; do $(BIN)/python -m pytest -m "$$half" -n 2 --dist worksteal || failed=1; done; exit $$failed; fi

check: $(TOOLS)  ## format, lint, types, and who imports whom
	$(BIN)/ruff format --check src bench campaign tests examples scripts
	$(BIN)/ruff check src bench campaign tests examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(TOOLS)  ## put the code into its form
	$(BIN)/ruff format src bench campaign tests examples scripts
	$(BIN)/ruff check --fix src bench campaign tests examples scripts

docs: $(TOOLS)  ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: setup $(TOOLS)  ## throughput and growth; takes a while (ARGS="--save": keep the figures in bench/results)
	@export JAVA_HOME="$$(scripts/setup-java.sh)" && $(BIN)/python -m bench throughput $(ARGS) && $(BIN)/python -m bench growth $(ARGS)

campaign: setup $(TOOLS)  ## random cases against oracles, ten minutes per subject (ARGS="--seconds 60 --seed 7")
	@export JAVA_HOME="$$(scripts/setup-java.sh)" && for subject in plans jobs texts values snapshots spark changes troubles faults; do $(BIN)/python -m campaign $$subject $(if $(ARGS),$(ARGS),--seconds 600) || failed=1; done; exit $${failed:-0}

clean:  ## remove the virtual environment, caches and what Spark left
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find src bench campaign tests -name __pycache__ -type d -exec rm -rf {} +
