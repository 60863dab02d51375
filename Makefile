# All commands for development and CI. Each target installs what it needs.

# Hundreds of processes start in the tests: they share their compiled modules.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
PORT ?= 8000
SANDBOX_PORT ?= 8001
GATEWAY_PROFILE ?= specification
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo trial smoke rehearse upgrade-check drill test test-contract test-faults faults-on-postgresql faults-on-sqlite
.PHONY: sabotage test-simulation test-policies audit parts
.PHONY: check types rules catalogues docs docs-tables database-rules messages pictures bench run clean lock

demo: $(READY)  ## the whole product on this machine, against a simulated provider
	@$(BIN)/python -m tools.demo --port $(PORT) --sandbox-port $(SANDBOX_PORT) --profile $(GATEWAY_PROFILE)

trial: $(READY)  ## an empty installation on this machine, against a simulated provider; prints the link of the first administrator
	@$(BIN)/python -m tools.trial --port $(PORT) --sandbox-port $(SANDBOX_PORT) --profile $(GATEWAY_PROFILE) $(ARGS)

smoke: $(READY)  ## prepare, approve and send one withdrawal over HTTP, with its own data folder; prints one line of JSON
	@$(BIN)/python -m tools.smoke

rehearse: $(READY)  ## the production form on this machine against the sandbox, with one payment over TLS; ARGS=--stay keeps it running
	@$(BIN)/python -m tools.rehearsal.rehearse $(ARGS)

upgrade-check: $(READY)  ## check that the last release works on the new schema and its open work can be finished; prints one line of JSON
	@$(BIN)/python -m tools.upgrade.check

drill: $(READY)  ## restore the database to each moment of a payment, from copy, dump, base backup and standby; prints one line of JSON
	@$(BIN)/python -m tools.inside_django tools.drill $(ARGS)

# Two more processes than processors, because many tests wait.
ALL_TESTS = --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) + 2)) --dist loadgroup

test: $(READY)  ## all tests that this machine can run, on several processes; lists what was skipped and why
	$(BIN)/pytest $(or $(ARGS),$(ALL_TESTS))

test-contract: $(READY)  ## thousands of random requests and hundreds of random histories; prints the seed
	CONTRACT_CASES=$${CONTRACT_CASES:-300} \
	CONTRACT_SEED=$${CONTRACT_SEED:-$$($(BIN)/python -c 'import secrets; print(secrets.randbelow(2**32))')} \
	$(BIN)/pytest tests/contract tests/sandbox/test_properties.py tests/payments_gateway/test_properties.py \
	--hypothesis-profile=default --numprocesses 2 $(ARGS)

FAULTS ?= whole
FAULTS_SIZE = FAULTS=$(FAULTS) $(if $(filter sample,$(FAULTS)),RACE_ROUNDS=$${RACE_ROUNDS:-3})
FAULTS_DATABASE ?= postgres://postgres@127.0.0.1:5432/countersign_faults

test-faults: faults-on-postgresql faults-on-sqlite sabotage  ## kill processes, cut connections, race requests, remove safeguards; prints the figures; FAULTS=sample takes minutes

faults-on-postgresql: $(READY)
	$(FAULTS_SIZE) COUNTERSIGN_TEST_DATABASE_URL=$(FAULTS_DATABASE) $(BIN)/pytest tests/faults $(ARGS)

faults-on-sqlite: $(READY)
	$(FAULTS_SIZE) env -u COUNTERSIGN_TEST_DATABASE_URL $(BIN)/pytest tests/faults $(ARGS)

sabotage: $(READY)
	$(BIN)/python -m tests.sabotage $(if $(filter sample,$(FAULTS)),--sample 4)

test-simulation: $(READY)  ## 20,000 random histories of people, processes and faults, from a new seed; prints what they covered
	SIMULATION_HISTORIES=$${SIMULATION_HISTORIES:-20000} \
	SIMULATION_SEED=$${SIMULATION_SEED:-$$($(BIN)/python -c 'import secrets; print(secrets.randbelow(2**31))')} \
	$(BIN)/pytest tests/simulation --numprocesses 2 $(ARGS)
	$(MAKE) test-policies

test-policies: $(READY)  ## approval policies beside a naive evaluator, 100,000 random ones from a new seed, which is printed
	@seed=$${POLICY_SEED:-$$($(BIN)/python -c 'import secrets; print(secrets.randbelow(2**31))')}; echo "POLICY_SEED=$$seed"; \
	POLICY_CASES=$${POLICY_CASES:-100000} POLICY_SEED=$$seed \
	$(BIN)/pytest tests/policies/test_evaluator.py tests/policies/test_stand_ins.py tests/operations/test_descriptions.py

check: types rules catalogues docs  ## formatting, lint, types, import directions, templates, migrations, deployment, documentation

types: $(READY)
	$(BIN)/mypy

rules: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/djade --target-version 5.2 --check $$(git ls-files 'templates/*.html' '*/templates/*.html')
	$(BIN)/djhtml --tabwidth 2 --check $$(git ls-files 'templates/*.html')
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/django-admin makemigrations --check --dry-run --pythonpath . --settings payments_gateway.sandbox.settings
	$(BIN)/python -m tools.upgrade.lint
	$(BIN)/python -m tools.deploy_check

catalogues: $(READY)  ## fail on a text without a translation
	$(BIN)/python -m tools.messages --check

# Never --quiet: strict mode counts logged warnings, so with it every broken link would pass.
docs: $(READY)  ## build the documentation site in site/; fails on a stale table, an unknown name or a broken link
	$(BIN)/python -m tools.docs --check
	$(BIN)/properdocs build
	$(BIN)/python -m tools.docs --site site

docs-tables: $(READY)  ## regenerate the tables of the documentation
	$(BIN)/python -m tools.docs

# A test database is freshly migrated, so the test that compares the lists can also write them.
RULES_TEST = $(BIN)/pytest --quiet tests/operations/monitoring/test_database_rules.py -k list
database-rules: $(READY)  ## list the triggers and constraints that the migrations create, after a change of migrations
	WRITE_DATABASE_RULES=1 env -u COUNTERSIGN_TEST_DATABASE_URL $(RULES_TEST)
	WRITE_DATABASE_RULES=1 COUNTERSIGN_TEST_DATABASE_URL=$(FAULTS_DATABASE) $(RULES_TEST)

messages: $(READY)  ## collect the texts of the screens into locale/ and compile them
	$(BIN)/python -m tools.messages

pictures: $(READY)  ## take the pictures of README and docs from the demo; needs Chromium
	$(BIN)/python -m tools.pictures

bench: $(READY)  ## measure the size and speed targets of docs/benchmarks.md on this machine; ARGS="--only P9" chooses
	@$(BIN)/python -m tools.bench $(ARGS)

parts: $(READY)  ## list what production installs and pages load in var/parts.json (CycloneDX)
	$(BIN)/python -m tools.third_party.parts var/parts.json

# Not part of `make check`: it needs the network, and its answer changes without a change of the code.
audit: $(READY)  ## compare what production installs with known vulnerabilities; says so if their data cannot be reached
	@$(BIN)/python -m tools.third_party.vulnerabilities

run: $(READY)  ## the web process alone, configured by the environment
	$(BIN)/python manage.py migrate
	$(BIN)/python manage.py collectstatic --noinput --verbosity 0
	$(BIN)/gunicorn backoffice.wsgi --bind 127.0.0.1:$(PORT)

clean:  ## delete the demo's data and everything installed
	rm -rf var site .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# Three locks: production; its extras for an object store, error reports and traces; development. Each omits what an
# earlier lock pins for every platform, but not what that pins for some platforms only.
EXTRAS = --extra s3 --extra otel --extra sentry
NAMES = 's/^([A-Za-z0-9._-]+)(\[[^]]*\])?==[^;]*$$/--no-emit-package \1/p'
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header $(ARGS) pyproject.toml
lock: $(READY)  ## lock the dependencies that pyproject.toml names; with ARGS=--upgrade to their newest versions
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) $(EXTRAS) --constraint requirements.lock --output-file requirements-extras.lock \
		$$(sed -nE $(NAMES) requirements.lock)
	$(COMPILE) $(EXTRAS) --extra dev --constraint requirements.lock --constraint requirements-extras.lock --no-annotate \
		--output-file requirements-dev.lock $$(sed -nE $(NAMES) requirements.lock requirements-extras.lock)

$(READY): requirements.lock requirements-extras.lock requirements-dev.lock
	@echo "Installing what the three locks name …"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement requirements.lock --requirement requirements-extras.lock --requirement requirements-dev.lock
	@touch $@
