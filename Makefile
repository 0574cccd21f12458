# Every target sets up what it needs. Start with `make serve` or `make test`.

HOST    ?= 127.0.0.1
PORT    ?= 8000
WORKERS ?= 1
WORLD   ?= starter
ARGS    ?=
EXTRAS  ?=
XBRL    ?=

# The first Python that is new enough and built with optimizations, else the first that is new enough; name another with PYTHON=...
# Without optimizations, as pyenv builds it by default, everything takes up to twice as long. Distributions build with them.
FIND_PYTHON = for p in python3 /usr/bin/python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
    $$p -c 'import ensurepip, sys, sysconfig as c; \
        optimized = sys.executable.startswith("/usr/bin/") or "--enable-optimizations" in str(c.get_config_var("CONFIG_ARGS")); \
        sys.exit(1 if sys.version_info < (3, 11) else 0 if optimized else 2)' 2>/dev/null; \
    case $$? in 0) echo $$p; exit;; 2) found=$${found:-$$p};; esac; done; echo $$found
ifndef PYTHON
PYTHON = $(eval PYTHON := $$(shell $$(FIND_PYTHON)))$(PYTHON)
endif

BIN     := .venv/bin
RUNTIME := .venv/.runtime
DRIVERS := .venv/.drivers
REPORTS := .venv/.xbrl
DEV     := .venv/.dev
PEERS   := .venv-bench/.peers
FOREIGN := .venv-foreign/.clients
LINT    := tools/openapi-lint
LINTERS := $(LINT)/node_modules/.installed
OPENAPI := build/openapi.json

# Locked wheels only: the same bytes everywhere, and no compiler needed.
INSTALL := tools/install.py
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --only-binary :all: --no-header --no-emit-index-url $(ARGS)

# Tests write and sync hundreds of small editions: in memory if there is room, unless TMPDIR is set.
IN_MEMORY = $(shell test -z "$$TMPDIR" && test "$$(df -kP /dev/shm 2>/dev/null | awk 'END { print int($$4) }')" -gt 6000000 \
    && echo TMPDIR=/dev/shm)

# Two per core, because many tests wait: for a frozen store, the end of a window or a world that another process builds.
PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) \* 2)

# Write bytecode even if the environment forbids it: otherwise hundreds of processes would compile the same files.
PYTEST = PYTHONDONTWRITEBYTECODE= $(IN_MEMORY) $(BIN)/pytest --numprocesses $(PROCESSES) --maxprocesses 9 --dist loadfile \
    --no-loadscope-reorder --max-worker-restart 1 --durations 10 --durations-min 0.5

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup serve test test-all test-fast torture check check-code check-types check-generated docs snapshots sbom openapi-lint bench foreign lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  settings: HOST=$(HOST) PORT=$(PORT) WORKERS=$(WORKERS) WORLD=$(WORLD) PYTHON=... EXTRAS=1 ARGS=..."

setup: $(RUNTIME) $(if $(EXTRAS),$(DRIVERS)) $(if $(XBRL),$(REPORTS)) ## create .venv with the locked dependencies and the sankofa command; EXTRAS=1 adds PostgreSQL, Redis and tracing, XBRL=1 inline XBRL

serve: setup ## serve REST, MCP and the web pages; builds an edition of WORLD (starter, sample) when there is none
	@$(BIN)/sankofa $(WORLD) --if-empty
	@$(BIN)/sankofa serve --sign-in --host $(HOST) --port $(PORT) --workers $(WORKERS)

test: $(DEV) ## run the tests except those marked deep; ARGS are passed to pytest
	$(PYTEST) $(ARGS)

test-all: $(DEV) ## every test in more rounds, about 20 minutes
	TEST_ALL_ROUNDS=1 $(PYTEST) $(ARGS)

test-fast: $(DEV) ## the unit tests and tests/spec on files alone, the fast part
	TEST_EXAMPLES=10 $(PYTEST) tests/unit tests/spec -m "not slow" $(ARGS)

# One process: a parallel test would disturb figures in milliseconds.
torture: $(DEV) ## all attacks and faults, over an hour; writes the figures of docs/explanation/reliability.md. ARGS are passed to pytest
	rm -f build/torture.jsonl
	TORTURE=1 TORTURE_RECORD=build/torture.jsonl PYTHONDONTWRITEBYTECODE= $(IN_MEMORY) $(BIN)/pytest -m torture -o faulthandler_timeout=0 $(ARGS); \
	    status=$$?; $(BIN)/python tools/reliability.py build/torture.jsonl && exit $$status

# The parts are independent: `make -j2 check` runs two at a time.
check: check-code check-types check-generated openapi-lint ## lint, format, types, layers, docs, OpenAPI

check-code: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/bandit --quiet --recursive src --configfile pyproject.toml
	$(BIN)/lint-imports

check-types: $(DEV)
	$(BIN)/mypy

check-generated: $(DEV)
	$(BIN)/python -m tools.reference --check
	$(BIN)/python tools/client.py --check
	$(BIN)/python tools/catalogues.py --check
	$(BIN)/python tools/sbom.py --check
	$(BIN)/python tools/reliability.py --check
	$(BIN)/python -m bench table --check

docs: $(DEV) ## write docs/reference and the methods of the client from the code
	$(BIN)/python -m tools.reference
	$(BIN)/python tools/client.py

snapshots: $(DEV) ## rewrite the OpenAPI snapshot and the example answers; ARGS are passed to pytest
	UPDATE_SNAPSHOTS=1 $(IN_MEMORY) $(BIN)/pytest -n 0 tests/spec/test_openapi.py tests/client/test_examples.py $(ARGS)

sbom: $(DEV) ## write docs/explanation/licences.md and build/sbom.cdx.json: installed packages with digests and licences
	$(BIN)/python tools/sbom.py

openapi-lint: $(DEV) $(LINTERS) ## lint the OpenAPI document with spectral and redocly
	@mkdir -p $(dir $(OPENAPI))
	$(BIN)/sankofa openapi > $(OPENAPI)
	$(BIN)/python $(LINT)/node.py spectral $(OPENAPI)
	$(BIN)/python $(LINT)/node.py redocly $(OPENAPI)

foreign: $(FOREIGN) ## create .venv-foreign with other people's clients, to test the dialects

bench: $(DEV) $(PEERS) ## run the benchmarks; the peers live in .venv-bench
	$(BIN)/python -m bench $(ARGS)

lock: $(DEV) ## resolve requirements/*.txt and the npm lock again; ARGS=--upgrade for newer versions
	$(COMPILE) pyproject.toml --group build -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --group build --group dev --all-extras -c requirements/runtime.txt -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra objects --extra postgres --extra redis --extra timestamps --extra tracing -c requirements/dev.txt -o requirements/extras.txt
	$(COMPILE) pyproject.toml --extra xbrl -c requirements/dev.txt -o requirements/xbrl.txt
	$(COMPILE) --group bench -o requirements/bench.txt
	$(COMPILE) --no-binary jsonpath-rw --emit-build-options --group foreign -o requirements/foreign.txt
	sed -i '/^--only-binary/d' requirements/foreign.txt # otherwise it would override the line before
	$(COMPILE) --group installer -c requirements/dev.txt -o requirements/installer.txt
	$(BIN)/python $(LINT)/node.py lock

clean: ## remove everything the targets made, except data in var/
	rm -rf .venv .venv-bench .venv-foreign $(LINT)/node_modules build clients/python/build dist src/*.egg-info
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# A stamp is touched last, so an interrupted install starts again.

# An environment keeps the Python that created it.
define create-venv
@test -n "$(PYTHON)" || { echo "Sankofa needs Python 3.11 or newer; name one with PYTHON=/path/to/python3" >&2; exit 1; }
@test -x $(1)/bin/python || { $(PYTHON) -c 'import ensurepip' 2>/dev/null && $(PYTHON) -m venv --without-pip $(1); } || { echo "$(PYTHON) cannot create $(1); on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
endef

# Compile the imports of a start once, even if the environment forbids bytecode: otherwise every start would.
# pip and setuptools use one core, so the other compiles.
$(RUNTIME): requirements/runtime.txt pyproject.toml
	$(call create-venv,.venv)
	@echo "installing the locked dependencies into .venv"
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q src/sankofa & \
	    $(BIN)/python $(INSTALL) requirements/runtime.txt && wait $$!
	@PYTHONDONTWRITEBYTECODE= PYTHONPATH=src $(BIN)/python -c "import sankofa.cli.serving, sankofa.cli.publishing, sankofa.mcp.surface" & \
	    $(BIN)/python $(INSTALL) --editable && wait $$!
	@touch $@

$(DRIVERS): requirements/extras.txt $(RUNTIME)
	@echo "installing the locked extras (PostgreSQL, Redis, timestamps, tracing) into .venv"
	@$(BIN)/python $(INSTALL) requirements/extras.txt
	@touch $@

$(REPORTS): requirements/xbrl.txt $(RUNTIME)
	@echo "installing the locked reader of inline XBRL into .venv"
	@$(BIN)/python $(INSTALL) requirements/xbrl.txt
	@touch $@

$(DEV): requirements/dev.txt $(RUNTIME)
	@echo "installing the locked development tools into .venv"
	@$(BIN)/python $(INSTALL) requirements/dev.txt
	@touch $@

$(PEERS): requirements/bench.txt
	$(call create-venv,.venv-bench)
	@.venv-bench/bin/python $(INSTALL) requirements/bench.txt
	@touch $@

$(FOREIGN): requirements/foreign.txt
	$(call create-venv,.venv-foreign)
	@echo "installing other people's clients into .venv-foreign"
	@.venv-foreign/bin/python $(INSTALL) requirements/foreign.txt
	@touch $@

$(LINTERS): $(LINT)/package-lock.json $(DEV)
	@$(BIN)/python $(LINT)/node.py install
	@touch $@
