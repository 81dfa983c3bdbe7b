# Every target sets up what it needs and calls .venv/bin/... itself: there is no environment to activate.
# Another Python than python3: make PYTHON=python3.12 <target>
PYTHON ?= python3
BIN := .venv/bin
SHELL := /bin/sh
.NOTPARALLEL:
.DEFAULT_GOAL := help

# Spark's workers are the interpreter of .venv and find only what is installed in it.
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
unexport PYTHONPATH PYTHONHOME SPARK_HOME VIRTUAL_ENV
# A machine whose own name does not resolve must be able to run Spark.
export SPARK_LOCAL_IP ?= 127.0.0.1

# Formats of others that `make setup` and `make test` leave out: [tool.uv.workspace] exclude.
APART := $(foreach name,ducklake sqlite vortex,tests/third_party/$(name)/pyproject.toml)
# One of them: make reports-third-party APART_FORMATS=vortex
APART_FORMATS ?= $(call formats_of,$(APART))
MEMBERS := $(filter-out $(APART),$(wildcard pyproject.toml plugins/*/pyproject.toml tests/third_party/*/pyproject.toml))
READY := .venv/.complete
READY_COMPAT := .venv-compat/.complete
READY_APART := .venv-third-party/.complete
SOURCES := core conformance plugins verification tests scripts $(wildcard benchmarks examples)
# The formats that the workspace offers, ours and the third party's, by their entry points.
formats_of = $(shell sed -n '/^\[project.entry-points."laketier.formats"\]/,/^$$/s/^\([a-z][a-z0-9_-]*\) *=.*/\1/p' $(1))
FORMATS ?= $(call formats_of,$(MEMBERS))
OURS := $(call formats_of,$(wildcard plugins/*/pyproject.toml))
# Processes of pytest. One more than there are cores: tests wait for servers, locks and other processes.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
SPREAD = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
comma := ,
empty :=
space := $(empty) $(empty)
# Their folders in memory, where there is room: a core waits for each sync of a disk. LAKETIER_TESTS_ON_DISK=1 says no.
# Only in `make test`: what runs by itself, and the deep tests, keep theirs on the disk.
IN_MEMORY = $(BIN)/python tests/support/in_memory.py
# What each test took, for the list that `make test` ends with.
TIMES := artifacts/times
# What the formats take by turns of the suite in `make test`, and nowhere else: cases of the tests in these files, and
# these tests. Rounds, their replays, kills and rivals, on Spark and in stores too, are met whole by each format.
BY_TURNS := test_answers.py test_clocks.py test_confinement.py test_dropped.py test_effects.py test_filters.py test_layout.py \
	test_looks.py test_maintenance_races.py test_meanwhile.py test_names.py test_object_stores.py test_old_results.py \
	test_older_files.py test_operations.py test_partition_values.py test_pipelines.py test_power.py test_reshape.py \
	test_scale.py test_series.py test_settings.py test_store_faults.py test_surroundings.py test_time_travel.py test_torn.py \
	$(addprefix test_bits.py::test_,a_bit_of_a_file_has_another_value) \
	$(addprefix test_capabilities.py::test_,lines_for_people_read_the_table) \
	$(addprefix test_damage.py::test_,each_file_is_written_over each_value_is_another) \
	$(addprefix test_effects.py::test_,an_effect_of_a_round_fails) \
	$(addprefix test_foreign_tables.py::test_,a_column_is_added_to_a_foreign_table a_foreign_table_as_a_log \
		a_foreign_table_is_read_as_its_tool_reads_it an_overwrite_of_a_foreign_table maintenance_of_a_foreign_table) \
	$(addprefix test_older_files.py::test_,a_file_of_a_long_history_is_damaged) \
	$(addprefix test_options.py::test_,rows_are_the_same_under_each_option) \
	$(addprefix test_scale.py::test_,memory_of_a_writer_and_of_a_reader memory_of_a_writer_of_partitions) \
	$(addprefix test_settings.py::test_,a_new_table_with_an_odd_property a_property_that_others_left)
# More arguments for pytest, the demo or the benchmarks: make test-unit ARGS="-k tokens"
ARGS ?=

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 20

.PHONY: python java
python:
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { echo "laketier: Python 3.11 or newer is needed, and '$(PYTHON)' is not on the PATH. Install one, or: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@"$(PYTHON)" scripts/preflight.py
java: python
	@"$(PYTHON)" scripts/preflight.py --java

$(READY): uv.lock $(MEMBERS) scripts/bootstrap.py | python
	@"$(PYTHON)" scripts/bootstrap.py
$(READY_COMPAT): uv.lock $(MEMBERS) scripts/bootstrap.py | python
	@"$(PYTHON)" scripts/bootstrap.py --compat

$(READY_APART): $(APART) pyproject.toml tests/third_party/requirements.txt scripts/bootstrap.py | python
	@"$(PYTHON)" scripts/bootstrap.py --third-party

# JVMs of tests live for seconds, and most of that is their start. Made once, kept in the environment.
.PHONY: class-archive class-archive-compat class-archive-apart
class-archive: java $(READY)
	@$(BIN)/python tests/support/class_archive.py >/dev/null
class-archive-compat: java $(READY_COMPAT)
	@.venv-compat/bin/python tests/support/class_archive.py >/dev/null
class-archive-apart: java $(READY_APART)
	@.venv-third-party/bin/python tests/support/class_archive.py >/dev/null

.PHONY: setup
setup: python $(READY) ## make .venv: the locked environment with all members

.PHONY: demo
demo: java $(READY) ## stream real data into every format, kill the driver, count what arrived
	$(BIN)/laketier demo $(addprefix --format=,$(OURS)) $(ARGS)

.PHONY: demo-service
demo-service: java $(READY) ## tier 20 topics into four formats, kill a worker in mid-round, count what arrived
	$(BIN)/python examples/service/demo.py $(ARGS)

.PHONY: demo-search
demo-search: java $(READY) ## a stream of documents, an index that keeps up, and a picture of both
	$(BIN)/python examples/search/demo.py $(ARGS)

.PHONY: test test-begun test-rest
# The suite on the third party's format is left to test-conformance by itself, and so to test-all.
test: FORMATS = $(OURS)
# mypy leaves a core free, on which is made what each process would else make for itself, or wait for: the archive of
# Spark's classes, and the compiled tests of a fresh checkout. Where this fails, the tests themselves say why.
test: MEANWHILE = $(BIN)/python tests/support/class_archive.py >/dev/null 2>&1; \
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq >/dev/null 2>&1; \
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq --pyargs laketier_conformance \
		--lake-format=$(firstword $(FORMATS)) >/dev/null 2>&1;
# Of each operation that is no append: the same on each day, so that a checkout which was green stays so, and fewer commits
# of others than an author meets. The deep tests take all steps.
test: WHERE = $(IN_MEMORY)
# The engines in Rust start a thread a core, and each of a test's small steps wakes one after another. One does the same
# work. The deep tests, and what runs by itself, have them all.
test: export TOKIO_WORKER_THREADS ?= 1
# Nor does each format meet each case of the tests that take longest: docs/proof/test-time.md says what each still meets.
test: SOME_STEPS = --lake-steps=1 --lake-seed=1 --lake-commits=110 --lake-by-turns=$(subst $(space),$(comma),$(strip $(BY_TURNS)))
test: test-begun lint test-conformance test-rest ## everything that CI runs: lint, types, import rules, the suite, the tests
test-begun:
	@mkdir -p $(TIMES) && rm -f $(TIMES)/*.xml && touch $(TIMES)/begun
test-rest: class-archive ## all tests but the deep ones and the suite
	@# test-conformance runs the suite in every lane; tests/conformance would run its bare lane again.
	$(IN_MEMORY) $(BIN)/pytest $(SPREAD) --junitxml=$(TIMES)/tests.xml -m "not deep" \
		--deselect tests/conformance/test_formats_conform.py::test_conforms $(ARGS)

.PHONY: test-all
test-all: java $(READY) ## everything, before a release: in pieces, and on where it ended. ARGS=--list says what is left
	$(BIN)/python scripts/release_tests.py $(ARGS)

.PHONY: test-deep
test-deep: class-archive ## the deep tests: more histories, seeds, states and cells of the fault matrix
	$(BIN)/pytest $(SPREAD) -m deep $(ARGS)

.PHONY: test-unit
test-unit: python $(READY) ## the quick tests without Spark; needs no Java
	$(BIN)/pytest $(SPREAD) -m "not spark and not slow and not deep" $(ARGS)

.PHONY: test-spark
test-spark: class-archive ## the tests on Spark
	$(BIN)/pytest -m "spark and not deep" $(ARGS)

.PHONY: test-compat
test-compat: class-archive-compat ## the tests on Spark once more, on the oldest supported line of pyspark
	PYSPARK_PYTHON=$(CURDIR)/.venv-compat/bin/python PYSPARK_DRIVER_PYTHON=$(CURDIR)/.venv-compat/bin/python \
		.venv-compat/bin/pytest -m "spark and not deep" $(ARGS)

.PHONY: test-conformance
test-conformance: class-archive ## the conformance suite on every format here, or: FORMATS="delta lance"
	@# One run for all of them: one Spark session, and no process waits while another works.
	SPARK_SUBMIT_OPTS="$${SPARK_SUBMIT_OPTS-$$($(BIN)/python tests/support/class_archive.py)}" \
		$(WHERE) $(BIN)/pytest $(SPREAD) --pyargs laketier_conformance --lake-format=$(subst $(space),$(comma),$(strip $(FORMATS))) \
		--lake-report='artifacts/conformance/{format}.json' --junitxml=$(TIMES)/conformance.xml $(SOME_STEPS) $(ARGS)

.PHONY: test-third-party
test-third-party: class-archive-apart ## the suite on formats of others, which have an environment of their own: ARGS=--lake-lanes=bare
	@# In a folder of its own, as this checkout's configuration of pytest is not theirs.
	mkdir -p artifacts/third-party && cd artifacts/third-party && echo '[pytest]' >pytest.ini && \
		PYSPARK_PYTHON=$(CURDIR)/.venv-third-party/bin/python PYSPARK_DRIVER_PYTHON=$(CURDIR)/.venv-third-party/bin/python \
		SPARK_SUBMIT_OPTS="$${SPARK_SUBMIT_OPTS-$$($(CURDIR)/.venv-third-party/bin/python $(CURDIR)/tests/support/class_archive.py)}" \
		$(CURDIR)/.venv-third-party/bin/pytest $(SPREAD) --pyargs laketier_conformance \
			--lake-format=$(subst $(space),$(comma),$(strip $(APART_FORMATS))) --lake-report='{format}.json' $(ARGS)
	@# Their own tests, which this checkout's pytest leaves out (tests/conftest.py).
	cd artifacts/third-party && $(CURDIR)/.venv-third-party/bin/pytest --noconftest -c pytest.ini \
		$(addprefix $(CURDIR)/,$(wildcard tests/third_party/*/tests))

.PHONY: reports
reports: test-conformance ## the suite on every format, and the table of docs/proof/conformance.md from its reports
	$(BIN)/python scripts/conformance_pages.py artifacts/conformance
	$(BIN)/python scripts/page_tables.py

.PHONY: reports-sources
reports-sources: $(READY) ## the suite of sources on our own sources, and the table of docs/proof/sources.md
	$(BIN)/python scripts/source_reports.py
	$(BIN)/python scripts/page_tables.py

.PHONY: reports-third-party
reports-third-party: test-third-party $(READY) ## the same of the formats of others that have an environment of their own
	$(BIN)/python scripts/conformance_pages.py --third-party artifacts/third-party
	$(BIN)/python scripts/page_tables.py

.PHONY: test-faults
test-faults: java $(READY) ## the whole fault matrix, bare and on Spark, and random kills; writes docs/proof/faults.md
	$(BIN)/python -m laketier_verification.faults matrix --fresh
	$(BIN)/python -m laketier_verification.faults open --fresh
	$(BIN)/python -m laketier_verification.faults random
	$(BIN)/python -m laketier_verification.faults spark --fresh
	$(BIN)/python -m laketier_verification.faults docs

.PHONY: test-interop
test-interop: java $(READY) ## real servers and connectors: KAFKA_LIBS, FLUSS_LIBS, REST_LIBS or SPARK_LIBS=<folder with its jars> make test-interop
	@test -n "$$KAFKA_LIBS$$FLUSS_LIBS$$REST_LIBS$$SPARK_LIBS" || { echo "laketier: set KAFKA_LIBS to a folder with the jars of Apache Kafka (org.apache.kafka:kafka_2.13 and what it needs), or FLUSS_LIBS to one with those of Apache Fluss (org.apache.fluss:fluss-server, log4j-slf4j-impl and log4j-core), or REST_LIBS to one with those of tests/interop/rest/pom.xml, or SPARK_LIBS to one with the connectors of others (org.apache.iceberg:iceberg-spark-runtime-4.1_2.13, org.xerial:sqlite-jdbc, io.delta:delta-spark_4.1_2.13 with delta-storage and what they need) and SPARK_PYTHON to an interpreter with pyspark 4.1, or several" >&2; exit 1; }
	$(BIN)/pytest tests/interop $(ARGS)

INTEROP_JARS ?= $(CURDIR)/.interop/jars
.PHONY: test-interop-jvm
test-interop-jvm: java $(READY) $(READY_COMPAT) ## delta-spark and iceberg-spark between our rounds; fetches their jars with Maven
	@test -d $(INTEROP_JARS) || { command -v mvn >/dev/null || { echo "laketier: Maven (mvn) is needed to fetch delta-spark and iceberg-spark; or INTEROP_JARS=<folder with their jars>" >&2; exit 1; }; \
		mvn -q -f tests/interop/jvm/pom.xml dependency:copy-dependencies -DoutputDirectory=$(INTEROP_JARS) \
			-DincludeGroupIds=io.delta,io.unitycatalog,org.apache.iceberg,org.xerial; }
	SPARK_LIBS=$(INTEROP_JARS) SPARK_PYTHON=$(CURDIR)/.venv-compat/bin/python \
		$(BIN)/pytest tests/interop/test_delta_spark.py tests/interop/test_iceberg_spark.py $(ARGS)
	SPARK_LIBS=$(INTEROP_JARS) PYSPARK_PYTHON=$(CURDIR)/.venv-compat/bin/python \
		PYSPARK_DRIVER_PYTHON=$(CURDIR)/.venv-compat/bin/python \
		.venv-compat/bin/pytest --timeout 1200 -o faulthandler_timeout=1100 tests/interop/jvm -rP $(ARGS)

.PHONY: test-isolated
test-isolated: python $(READY) ## build each distribution, install it alone, import all of it
	$(BIN)/python scripts/isolated.py

.PHONY: test-strangers
test-strangers: python $(READY) ## a wheel in an empty environment: the suite beside others' plugins of pytest, and what new-plugin's README says
	$(BIN)/python scripts/strangers.py $(ARGS)

.PHONY: test-matrix
test-matrix: python $(READY) ## each distribution with the oldest and the newest libraries it allows: ARGS="delta --end oldest"
	$(BIN)/python scripts/matrix.py $(ARGS)

.PHONY: test-upgrade
test-upgrade: python $(READY) ## a service from a former commit to this checkout and back, and both at once: ARGS=<commit>
	$(BIN)/python -W ignore -m laketier_verification.upgrade $(ARGS)

.PHONY: test-guards
test-guards: java $(READY) ## take each guard of exactly-once away in turn, and see a test fail
	$(BIN)/python -m laketier_verification.guards $(ARGS)

.PHONY: test-mutants
test-mutants: python $(READY) ## break a plugin in small ways, and see which test notices; goes on where it ended: ARGS="delta --seconds 600"
	@$(BIN)/python -m laketier_verification.mutants $(ARGS)

.PHONY: soak
soak: python $(READY) ## 10,000 epochs per format with kills, others and a reader; goes on where it ended: ARGS="--format delta"
	$(BIN)/python -m laketier_verification.faults.soak $(ARGS)

.PHONY: lint
lint: python $(READY) ## style, formatting, types, import rules, tables of docs/ that the code makes
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	@# mypy takes by far the longest, and one core: the others go beside it.
	@echo "$(BIN)/mypy, $(BIN)/lint-imports, $(BIN)/python scripts/page_tables.py --check"; \
	$(BIN)/mypy & types=$$!; \
	$(BIN)/lint-imports && $(BIN)/python scripts/page_tables.py --check; others=$$?; \
	$(MEANWHILE) wait $$types && exit $$others

.PHONY: format
format: python $(READY) ## mend style and formatting where that is mechanical
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

.PHONY: clocks
clocks: python $(READY) ## rounds and collections by hosts whose clocks are days off, on every format; needs libfaketime
	@$(BIN)/python -m laketier_verification.clocks $(ARGS)

.PHONY: model
model: python $(READY) ## explore the protocol's state space, and each removed guard
	@$(BIN)/python -m laketier_verification.model $(ARGS)

.PHONY: bench
bench: java $(READY) ## measure each lane and format against Spark and raw pyarrow
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: pages
pages: python $(READY) ## write the tables of docs/ anew that come from the code
	$(BIN)/python scripts/page_tables.py

.PHONY: docs
docs: python $(READY) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: lock
lock: python ## bring uv.lock up to date with the pyproject files
	@"$(PYTHON)" scripts/bootstrap.py --uv lock

.PHONY: clean
clean: ## remove the environments, the tools and all that is built
	rm -rf .venv .venv-compat .interop .tools build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
