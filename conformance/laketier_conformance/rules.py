"""The rules of the contract, in a sentence each: where the guide explains them, and which tests hold a format to them.

A new file of the suite names its rule here, and so does a test that is about another rule than its file.
"""

from __future__ import annotations

from laketier_conformance.rule import (
    CAPABILITIES,
    CATALOG,
    COMMITTER,
    DEPTH,
    ENTRY,
    FACTORY,
    REFUSALS,
    SPI,
    STATE,
    WRITER,
    Rule,
)
from laketier_conformance.rules_of_reading import READING

RULES = (
    Rule(
        "declaration",
        "A plugin names what it can do. Importing it imports no engine, and changes no setting of the process.",
        ENTRY,
        ("test_declaration.py",),
    ),
    Rule(
        "features",
        "A feature is there as declared, or refused by its name.",
        ENTRY,
        ("test_capabilities.py",),
    ),
    Rule(
        "other-readers",
        "A line that a plugin gives for another reader gives the table's rows.",
        ENTRY,
        ("test_capabilities.py::test_lines_for_people_read_the_table",),
    ),
    Rule(
        "findings",
        "A table that laketier alone wrote has no defects to repair.",
        CAPABILITIES,
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
        ENTRY,
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
        CATALOG,
        ("test_catalog.py", "test_properties.py", "test_places.py", "test_neighbours.py"),
    ),
    Rule(
        "versions",
        "A table's version stays while nothing changes, and each commit, change or new creation gives another one.",
        CATALOG,
        ("test_versions.py",),
    ),
    Rule(
        "names",
        "An odd name of a folder, a table or a column is kept as it is, or refused: it never means another one.",
        CATALOG,
        ("test_names.py",),
    ),
    Rule(
        "types",
        "A value comes back as it was written, or its type is refused when the table is created.",
        CATALOG,
        ("test_types.py",),
    ),
    Rule(
        "schema-changes",
        "A changed column keeps the rows that were there, and stays the same column.",
        CATALOG,
        ("test_reshape.py",),
    ),
    Rule(
        "executors",
        "A task works with what it was sent, and loads no metadata of the table.",
        FACTORY,
        ("test_executors.py",),
    ),
    Rule(
        "attempts",
        "The id that an attempt was given tells it from all others: numbers of tasks and processes come again.",
        WRITER,
        ("test_task_numbers.py",),
    ),
    Rule(
        "process",
        "A plugin at work leaves its process as it was: settings, output, and what is open.",
        ENTRY,
        ("test_process.py", "test_executors.py::test_a_process_that_used_a_table_ends"),
    ),
    Rule(
        "surroundings",
        "What a process finds where it runs changes no table: encoding, folders, limits, threads, dates, numbers.",
        ENTRY,
        ("test_applications.py", "test_surroundings.py"),
    ),
    Rule(
        "serialization",
        "What crosses processes has a version, is checked on arrival, and is never unpickled.",
        FACTORY,
        ("test_serializer.py",),
    ),
    Rule(
        "writer",
        "A writer takes rows by column name, refuses what does not fit, and leaves nothing behind after an abort.",
        WRITER,
        ("test_writer.py", "test_values.py", "test_large_values.py"),
    ),
    Rule(
        "unstorable-rows",
        "Rows that can't be stored are refused for their own values, whatever comes with them. No failure is one.",
        REFUSALS,
        ("test_unstorable.py",),
    ),
    Rule(
        "scale",
        "Every row is there once however many there are, and memory does not grow with them.",
        WRITER,
        ("test_scale.py",),
    ),
    Rule(
        "layout",
        "Rows lie in their partitions and buckets, and none is lost on the way.",
        WRITER,
        ("test_layout.py",),
    ),
    Rule(
        "isolation",
        "Nothing that is staged is visible: a reader sees one whole epoch or the one before it.",
        WRITER,
        ("test_isolation.py", "test_cut_off.py"),
    ),
    Rule(
        "exactly-once",
        "A round publishes its rows and its watermark together, and a replay adds nothing.",
        COMMITTER,
        ("test_rounds.py", "test_old_results.py"),
    ),
    Rule(
        "decision-table",
        "The stored watermark alone decides whether an epoch is published, already there, fenced or lost.",
        COMMITTER,
        ("test_decision_table.py",),
    ),
    Rule(
        "compare-and-set",
        "A publish succeeds only if the table is still as its committer opened it.",
        COMMITTER,
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
        COMMITTER,
        ("test_effects.py", "test_summaries.py", "test_kills.py", "test_operations.py"),
    ),
    Rule(
        "power-cut",
        "What was answered survives a power cut, and a step that was cut is there as a whole or not at all.",
        COMMITTER,
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
        COMMITTER,
        ("test_looks.py",),
    ),
    Rule(
        "unknown-outcomes",
        "A lost answer is neither success nor a conflict: the table tells what happened.",
        COMMITTER,
        ("test_unknown_outcomes.py", "test_answers.py"),
    ),
    Rule(
        "discard",
        "A discard deletes the staged files of its own attempt, and no file that may be live.",
        COMMITTER,
        ("test_discard.py",),
    ),
    Rule(
        "confinement",
        "A result, a listing or a link reaches no file but those of its own attempt.",
        COMMITTER,
        ("test_confinement.py",),
    ),
    Rule(
        "open-files",
        "A file that stays open from one epoch to the next has each row once, whoever goes on with it or finishes it.",
        "docs/authors/depth.md#files-that-stay-open-across-epochs",
        ("test_open_files.py",),
    ),
    Rule(
        "overwrite",
        "An overwrite replaces all rows in one atomic step, and keeps the watermarks of others.",
        COMMITTER,
        ("test_overwrite.py", "test_overwrite_partitions.py"),
    ),
    Rule(
        "upsert",
        "Replaced files leave, new files come and the watermark moves in one atomic step.",
        COMMITTER,
        ("test_upsert.py", "test_upsert_keys.py", "test_upsert_races.py", "test_upsert_kills.py"),
    ),
    Rule(
        "pipelines",
        "Two pipelines never become one, however alike their names are.",
        COMMITTER,
        ("test_pipelines.py",),
    ),
    Rule(
        "depth",
        "Watermarks and commits are found, however many commits of others came since.",
        COMMITTER,
        ("test_depth.py",),
    ),
    Rule(
        "damage",
        "A table with a damaged file refuses: it is never an older one, nor one of fewer rows.",
        COMMITTER,
        ("test_torn.py", "test_older_files.py", "test_damage.py", "test_bits.py"),
    ),
    Rule(
        "state",
        "A state is read without a write, stays what it was, and never decides a publish.",
        STATE,
        ("test_state.py",),
    ),
    Rule(
        "dropped",
        "A table that somebody drops is gone for who looks at it meanwhile, and never damaged.",
        STATE,
        (
            "test_dropped.py::test_a_table_is_dropped_beside_a_look",
            "test_dropped.py::test_a_table_is_dropped_beside_who_opened_it",
        ),
    ),
    *READING,
)

_RULE_OF = {test: rule for rule in RULES for test in rule.tests}


def rule_of(test: str) -> Rule | None:
    """The rule behind a test, by its name in the MANIFEST. A test's own line counts for more than its file's."""
    function = test.partition("[")[0]
    return _RULE_OF.get(function) or _RULE_OF.get(function.partition("::")[0])
