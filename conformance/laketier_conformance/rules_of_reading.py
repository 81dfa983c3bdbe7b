"""The rules of what a reader finds, and of what a format may have beside: see `rules`."""

from __future__ import annotations

from laketier_conformance.rule import CAPABILITIES, FACTORY, SOURCE, Rule

READING = (
    Rule(
        "scan",
        "A plan reads exactly the rows of one snapshot, in the columns and up to the limit that were asked for.",
        SOURCE,
        ("test_source.py",),
    ),
    Rule(
        "filters",
        "A filter that a source takes over gives the same rows as a filter of the plain scan.",
        SOURCE,
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
        SOURCE,
        ("test_time_travel.py",),
    ),
    Rule("history", "A listed snapshot can be read, and the list is in order.", CAPABILITIES, ("test_history.py",)),
    Rule(
        "incremental-read",
        "A range of versions gives the rows that its commits appended, each once.",
        CAPABILITIES,
        ("test_changes.py", "test_layout_changes.py"),
    ),
    Rule(
        "stamps",
        "A stamp is that of its commit alone, whoever asks and whatever came later.",
        CAPABILITIES,
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
        CAPABILITIES,
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
        CAPABILITIES,
        ("test_feed.py", "test_layout_changes.py::test_a_feed_of_partitions"),
    ),
    Rule(
        "indexing",
        "An index is published whole or not at all, and kept.",
        CAPABILITIES,
        ("test_indexing.py", "test_index_builds.py", "test_index_changes.py", "test_index_columns.py"),
    ),
    Rule(
        "index-answers",
        "What a query finds through an index is what a look at each row finds, whatever happened to the table.",
        CAPABILITIES,
        ("test_index_answers.py", "test_vector_answers.py"),
    ),
    Rule(
        "search",
        "A search gives the best rows of one snapshot, those without an index too, and none that is not there.",
        CAPABILITIES,
        ("test_search.py", "test_search_settings.py"),
    ),
    Rule(
        "index-tellings",
        "An index, its plan, its parts and a search of it tell what they are.",
        CAPABILITIES,
        ("test_index_tellings.py",),
    ),
    Rule(
        "adoption",
        "Files that lie there become a table as a whole or not at all, and stay where and as they are.",
        CAPABILITIES,
        ("test_adoption.py",),
    ),
    Rule(
        "orphans",
        "Orphan collection deletes what nobody published, and nothing that is or will be published.",
        CAPABILITIES,
        ("test_orphans.py", "test_cut_off.py::test_orphans_of_a_creation_that_was_cut_off"),
    ),
    Rule(
        "clocks",
        "A wrong clock of a host costs no row, and stops no later round.",
        CAPABILITIES,
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
        FACTORY,
        ("test_spark.py",),
    ),
)
