"""The rules of the contract, in a sentence each: where the guide explains them, and which tests hold a format to them.

A new file of the suite names its rule here, and so does a test that is about another rule than its file.
"""

from __future__ import annotations

from dataclasses import dataclass

GUIDE, DEPTH, SPI = "docs/authors/guide.md", "docs/authors/depth.md", "docs/reference/spi.md"
_CATALOG = f"{GUIDE}#2-the-catalog-driver"
_FACTORY = f"{GUIDE}#3-the-factory-crosses-to-executors"
_WRITER = f"{GUIDE}#4-the-writer-executor"
_COMMITTER = f"{GUIDE}#5-the-committer-driver-one-attempt"
_STATE = f"{GUIDE}#6-the-state-for-readers-driver"
_SOURCE = f"{GUIDE}#7-the-source"
_CAPABILITIES = f"{GUIDE}#8-capabilities-optional-parts-of-a-format"
_REFUSALS = "docs/authors/refusals.md#unstorablerows"
_ENTRY = f"{GUIDE}#1-the-entry-point"


@dataclass(frozen=True)
class Rule:
    """``tests`` are files of the suite, or single tests: ``test_a.py::test_b``. ``guide`` is a page and its anchor."""

    id: str
    sentence: str
    guide: str
    tests: tuple[str, ...]


RULES = (
    Rule(
        "declaration",
        "A plugin names what it can do. Importing it imports no engine, and changes no setting of the process.",
        _ENTRY,
        ("test_declaration.py",),
    ),
    Rule(
        "features",
        "A feature is there as declared, or refused by its name.",
        _ENTRY,
        ("test_capabilities.py",),
    ),
    Rule(
        "other-readers",
        "A line that a plugin gives for another reader gives the table's rows.",
        _ENTRY,
        ("test_capabilities.py::test_lines_for_people_read_the_table",),
    ),
    Rule(
        "findings",
        "A table that laketier alone wrote has no defects to repair.",
        _CAPABILITIES,
        ("test_capabilities.py::test_a_sound_table_has_no_findings",),
    ),
    Rule(
        "errors",
        "An error says what happened, where, and what to do next.",
        SPI,
        ("test_capabilities.py::test_errors_help",),
    ),
    Rule(
        "secrets",
        "A secret option is in no text for people, and nothing is stored with it.",
        _ENTRY,
        ("test_secrets.py",),
    ),
    Rule(
        "options",
        "An option changes how rows are kept, never the rows; one that does not fit is refused by its key, at once.",
        "docs/authors/depth.md#options-and-properties",
        ("test_options.py", "test_settings.py"),
    ),
    Rule(
        "catalog",
        "Creating, changing and dropping a table is idempotent, and leaves other tables alone.",
        _CATALOG,
        ("test_catalog.py", "test_properties.py", "test_places.py"),
    ),
    Rule(
        "versions",
        "A table's version stays while nothing changes, and each commit, change or new creation gives another one.",
        _CATALOG,
        ("test_versions.py",),
    ),
    Rule(
        "names",
        "An odd name of a folder, a table or a column is kept as it is, or refused: it never means another one.",
        _CATALOG,
        ("test_names.py",),
    ),
    Rule(
        "types",
        "A value comes back as it was written, or its type is refused when the table is created.",
        _CATALOG,
        ("test_types.py",),
    ),
    Rule(
        "schema-changes",
        "A changed column keeps the rows that were there, and stays the same column.",
        _CATALOG,
        ("test_reshape.py",),
    ),
    Rule(
        "executors",
        "A task works with what it was sent, and loads no metadata of the table.",
        _FACTORY,
        ("test_executors.py",),
    ),
    Rule(
        "attempts",
        "The id that an attempt was given tells it from all others: numbers of tasks and processes come again.",
        _WRITER,
        ("test_task_numbers.py",),
    ),
    Rule(
        "process",
        "A plugin at work leaves its process as it was: settings, output, and what is open.",
        _ENTRY,
        ("test_process.py", "test_executors.py::test_a_process_that_used_a_table_ends"),
    ),
    Rule(
        "surroundings",
        "What a process finds where it runs changes no table: encoding, folders, limits, dates, numbers of all kinds.",
        _ENTRY,
        ("test_surroundings.py",),
    ),
    Rule(
        "serialization",
        "What crosses processes has a version, is checked on arrival, and is never unpickled.",
        _FACTORY,
        ("test_serializer.py",),
    ),
    Rule(
        "writer",
        "A writer takes rows by column name, refuses what does not fit, and leaves nothing behind after an abort.",
        _WRITER,
        ("test_writer.py", "test_values.py", "test_large_values.py"),
    ),
    Rule(
        "unstorable-rows",
        "Rows that can't be stored are refused for their own values, whatever comes with them. No failure is one.",
        _REFUSALS,
        ("test_unstorable.py",),
    ),
    Rule(
        "scale",
        "Every row is there once however many there are, and memory does not grow with them.",
        _WRITER,
        ("test_scale.py",),
    ),
    Rule(
        "layout",
        "Rows lie in their partitions and buckets, and none is lost on the way.",
        _WRITER,
        ("test_layout.py",),
    ),
    Rule(
        "isolation",
        "Nothing that is staged is visible: a reader sees one whole epoch or the one before it.",
        _WRITER,
        ("test_isolation.py", "test_cut_off.py"),
    ),
    Rule(
        "exactly-once",
        "A round publishes its rows and its watermark together, and a replay adds nothing.",
        _COMMITTER,
        ("test_rounds.py", "test_old_results.py"),
    ),
    Rule(
        "decision-table",
        "The stored watermark alone decides whether an epoch is published, already there, fenced or lost.",
        _COMMITTER,
        ("test_decision_table.py",),
    ),
    Rule(
        "compare-and-set",
        "A publish succeeds only if the table is still as its committer opened it.",
        _COMMITTER,
        (
            "test_stale_states.py",
            "test_dropped.py",
            "test_races.py",
            "test_meanwhile.py",
            "test_maintenance_races.py",
            "test_locks.py",
        ),
    ),
    Rule(
        "atomic-effects",
        "A process that dies or fails at any step leaves a table whose replay is right.",
        _COMMITTER,
        ("test_effects.py", "test_summaries.py", "test_kills.py", "test_operations.py"),
    ),
    Rule(
        "power-cut",
        "What was answered survives a power cut, and a step that was cut is there as a whole or not at all.",
        _COMMITTER,
        ("test_power.py",),
    ),
    Rule(
        "servers",
        "What a server answered survives its crash, and what it was at is there as a whole or not at all. An account "
        "that may only read reads all, and writes nothing.",
        f"{DEPTH}#databases-and-other-tables-without-files",
        ("test_servers.py",),
    ),
    Rule(
        "looks",
        "A look that fails is no answer: nothing is taken for gone, free or another's because it could not be seen.",
        _COMMITTER,
        ("test_looks.py",),
    ),
    Rule(
        "unknown-outcomes",
        "A lost answer is neither success nor a conflict: the table tells what happened.",
        _COMMITTER,
        ("test_unknown_outcomes.py", "test_answers.py"),
    ),
    Rule(
        "discard",
        "A discard deletes the staged files of its own attempt, and no file that may be live.",
        _COMMITTER,
        ("test_discard.py",),
    ),
    Rule(
        "confinement",
        "A result, a listing or a link reaches no file but those of its own attempt.",
        _COMMITTER,
        ("test_confinement.py",),
    ),
    Rule(
        "overwrite",
        "An overwrite replaces all rows in one atomic step, and keeps the watermarks of others.",
        _COMMITTER,
        ("test_overwrite.py", "test_overwrite_partitions.py"),
    ),
    Rule(
        "upsert",
        "Replaced files leave, new files come and the watermark moves in one atomic step.",
        _COMMITTER,
        ("test_upsert.py",),
    ),
    Rule(
        "pipelines",
        "Two pipelines never become one, however alike their names are.",
        _COMMITTER,
        ("test_pipelines.py",),
    ),
    Rule(
        "depth",
        "Watermarks and commits are found, however many commits of others came since.",
        _COMMITTER,
        ("test_depth.py",),
    ),
    Rule(
        "damage",
        "A table with a damaged file refuses: it is never an older one, nor one of fewer rows.",
        _COMMITTER,
        ("test_torn.py", "test_older_files.py", "test_damage.py", "test_bits.py"),
    ),
    Rule(
        "state",
        "A state is read without a write, stays what it was, and never decides a publish.",
        _STATE,
        ("test_state.py",),
    ),
    Rule(
        "dropped",
        "A table that somebody drops is gone for who looks at it meanwhile, and never damaged.",
        _STATE,
        (
            "test_dropped.py::test_a_table_is_dropped_beside_a_look",
            "test_dropped.py::test_a_table_is_dropped_beside_who_opened_it",
        ),
    ),
    Rule(
        "scan",
        "A plan reads exactly the rows of one snapshot, in the columns and up to the limit that were asked for.",
        _SOURCE,
        ("test_source.py",),
    ),
    Rule(
        "filters",
        "A filter that a source takes over gives the same rows as a filter of the plain scan.",
        _SOURCE,
        (
            "test_filters.py",
            "test_partition_values.py",
            "test_source.py::test_a_filter_loses_no_row_and_adds_none",
            "test_source.py::test_filters_on_nan_infinity_and_zeros",
            "test_source.py::test_what_remains_is_of_what_was_asked",
        ),
    ),
    Rule(
        "time-travel",
        "An older snapshot has the rows and the columns that it had, whatever the table became.",
        _SOURCE,
        ("test_time_travel.py",),
    ),
    Rule("history", "A listed snapshot can be read, and the list is in order.", _CAPABILITIES, ("test_history.py",)),
    Rule(
        "incremental-read",
        "A range of versions gives the rows that its commits appended, each once.",
        _CAPABILITIES,
        ("test_changes.py", "test_layout_changes.py"),
    ),
    Rule(
        "stamps",
        "A stamp is that of its commit alone, whoever asks and whatever came later.",
        _CAPABILITIES,
        ("test_put_back.py",),
    ),
    Rule(
        "expiry",
        "Of snapshots that ended nothing is read, and what others need stays: rows, watermarks, other snapshots.",
        "docs/authors/depth.md#orphans",
        ("test_expiry.py",),
    ),
    Rule(
        "foreign-maintenance",
        "What other tools expire, compact, delete or change is read whole, refused, or gone: never less nor again.",
        _CAPABILITIES,
        ("test_foreign_maintenance.py", "test_foreign_updates.py", "test_foreign_partitions.py", "test_lives.py"),
    ),
    Rule(
        "foreign-tables",
        "A table that another tool wrote has the rows that this tool reads of it, or is refused before any effect.",
        "docs/authors/depth.md#tables-of-other-tools",
        ("test_foreign_tables.py",),
    ),
    Rule(
        "histories",
        "In whatever order a table is written, changed and cleaned up, each reader finds what the steps come to.",
        "docs/authors/depth.md#histories-that-are-drawn",
        ("test_series.py",),
    ),
    Rule(
        "change-feed",
        "A range of versions gives each change that its commits made to rows, each once.",
        _CAPABILITIES,
        ("test_feed.py", "test_layout_changes.py::test_a_feed_of_partitions"),
    ),
    Rule(
        "indexing",
        "An index is published whole or not at all, and kept.",
        _CAPABILITIES,
        ("test_indexing.py", "test_index_builds.py", "test_index_changes.py", "test_index_columns.py"),
    ),
    Rule(
        "index-answers",
        "What a query finds through an index is what a look at each row finds, whatever happened to the table.",
        _CAPABILITIES,
        ("test_index_answers.py", "test_vector_answers.py"),
    ),
    Rule(
        "search",
        "A search gives the best rows of one snapshot, those without an index too, and none that is not there.",
        _CAPABILITIES,
        ("test_search.py", "test_search_settings.py"),
    ),
    Rule(
        "index-tellings",
        "An index, its plan, its parts and a search of it tell what they are.",
        _CAPABILITIES,
        ("test_index_tellings.py",),
    ),
    Rule(
        "adoption",
        "Files that lie there become a table as a whole or not at all, and stay where and as they are.",
        _CAPABILITIES,
        ("test_adoption.py",),
    ),
    Rule(
        "orphans",
        "Orphan collection deletes what nobody published, and nothing that is or will be published.",
        _CAPABILITIES,
        ("test_orphans.py", "test_cut_off.py::test_orphans_of_a_creation_that_was_cut_off"),
    ),
    Rule(
        "clocks",
        "A wrong clock of a host costs no row, and stops no later round.",
        _CAPABILITIES,
        ("test_clocks.py",),
    ),
    Rule(
        "object-stores",
        "In an object store the contract is the same, though requests fail, answers are lost and processes die.",
        "docs/authors/depth.md#object-stores",
        ("test_object_stores.py", "test_store_faults.py", "test_late_stores.py"),
    ),
    Rule(
        "spark",
        "On Spark a format keeps the same contract, in each lane.",
        _FACTORY,
        ("test_spark.py",),
    ),
)

_RULE_OF = {test: rule for rule in RULES for test in rule.tests}


def rule_of(test: str) -> Rule | None:
    """The rule behind a test, by its name in the MANIFEST. A test's own line counts for more than its file's."""
    function = test.partition("[")[0]
    return _RULE_OF.get(function) or _RULE_OF.get(function.partition("::")[0])
