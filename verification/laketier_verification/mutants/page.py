"""The page of docs/proof, from the summaries beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from laketier_verification.mutants.report import Score
from laketier_verification.mutants.sample import SURE
from laketier_verification.mutants.summary import SUMMARIES, Earlier, Summary, Survivor, summaries
from laketier_verification.mutants.targets import TARGETS

_OF_ROWS = """\
A row tells of the code of its commit, and code of later commits may do better or worse. Commit 2b7d4f2f was rebased
before it landed, so the history does not have it; since then `--docs` takes commits of main alone. A first look is a
score that can only rise: many survivors have met only the first tests that reach them.
"""
_FEW_WAIT = 1 / 8
"""Of those tried, how many may not have met all tests yet, so that the list of survivors is worth reading."""
PAGE = SUMMARIES.with_suffix(".md")
_ABOUT = {
    "feather": "the conformance suite on Feather, on a Feather that declares nothing which may be left out, and on "
    "localfile (since November 25 with all that it may ask of the kit switched on), as all three stand on the kit; "
    "functions that are all about what a format has to ask for, such as folding, are localfile's (`targets.py` names "
    "them)",
    "localfile": "the conformance suite on localfile, and on Feather, which shares the kit; the kit is tried whole, "
    "and localfile's own modules by a sample of their own",
    "delta": "the conformance suite on Delta",
    "iceberg": "the conformance suite on Iceberg",
    "lance": "the conformance suite on Lance",
    "tiering": "the unit tests of tiering/, rounds/ and maintenance/",
    "spi": "the unit tests of spi/, tiering/, kit/ and config/",
    "rounds": "the unit tests of rounds/ and config/, and those of rounds in tests/integration/sources on localfile",
    **{f"{name}-own": f"the tests of plugins/{name}/tests" for name in ("localfile", "delta", "iceberg", "lance")},
}
_NOTES = {
    "feather": """\
The aim is 95 %. The suite alone does not reach it: by reading, it can ask about some 85 % of the last two samples at
most, and what it can't ask is named below. Each sample is drawn anew, before anybody looked at its mutants: a test
that was written for survivors of one can only raise the next. The intervals of seeds 43 to 241 overlap. A figure that
is told as the least is of a run that had to end before its survivors had met all tests. Our own tests have not been
asked about the survivors of seeds 7, 11, 61, 67 and 89, and about those of seed 37 only after its row was written.
Since seed 17 a test that starts processes is asked of those mutants alone that these run, and about 110 mutants of
expiry and of storage that lets a name be taken twice are not in the target any more. **Seed 17 was not finished**: of
59 mutants drawn at commit 2a57948a the suite noticed at least 32 (54 %), and our own tests 13 more (76 %).

**Seed 241 is not finished**: it met 902 tests of 38 files, 372 of them on localfile with all that it may ask of the
kit, the others on both Feathers. Of the eight that are left and count:

- one is noticed since: what a table was at a moment, of a history that was taken back, ended in an error of Python's.
  The question found a bug of Lance's: a moment whose version is gone was read as an older version;
- one was a call that nobody needed, and is gone;
- three are of what one format asks for, or of documents of another program: the origin of a table that was made of
  files that lie there, a file that stays open and shrank, and a known version that is always looked up anew;
- in three the answer or another one is right all the same: a rollup that any error passes over, as the manifests tell
  the same; a race that is told as an unknown outcome; and memory that ends while a document is decoded, which is told
  as damage. The last one a suite could ask for, and this one does not.

The first run of seed 223 left 13. Tests that were there notice four of them. New tests notice three more, which the row
does not count: a table that is dropped is told as damaged, the handle of a table that was taken back tells of it as if
it were whole, and a final refusal is told as a race. Six are left, for which a suite does not ask: who opens files by
their paths in a store, a bound of what a process keeps, a known version that is looked up anew, a manifest that is read
once more, or is another one than was asked for, and a partition's value that is no text.

What the survivors of all samples are about, and what came of each class:

- **Guards against documents that were forged or mixed up.** All that names a checksum is forged with it, documents
  lie in each other's and another table's place, paths lead to other tables, and answers are of the types of their
  contract. The forged table has a key, partitions and buckets.
- **An older manifest was compared with nothing**, a bug of the kit: one of a history that a restore had taken back gave
  other rows, and live files were listed as orphans. A rollup in the place of another one was another such bug. Each is
  compared with the manifest after it, and the suite brings such documents back.
- **What sums up a long history** was never damaged: the suite makes 34 commits now, and damages what few of them leave.
- **Damage that is told as "there is no table"** was an error like others. Whoever gets it makes the table anew.
- **Looks, races and failures**: a drop beside a look, a look that fails, a commit whose name was free in the middle
  of a history, expired snapshots that come back, a backup that is put back, a commit that is published once more.
- **Types and layouts**: types that a change leads to, metadata and foreign ids of columns, changes over an overwrite
  without rows, rows of a history.
- **What one format or one storage asks for.** Functions that are all about such a feature are localfile's. Branches
  within other functions stay, and count. Our own tests of the kit ask for files that lie there, stay open or are
  written as one, and for storage that lets a name be taken twice, or lets a write land that failed.
- **Mere speed**: rollups, documents that are kept, the head file, a garbage collector that waits. Our own tests count
  reads and writes; the suite asks for none of that.
- **Where nobody could tell**, a line argues it: the order of two looks, the kind of an error that becomes one refusal.
  18 lines were wrong, as a test told, and are gone.
- **Code that nobody needs is gone**: an answer that nobody took, an order that a unique id does not need, a second
  parse of watermarks, a look at no files, a guard that was made twice.
- **Words of messages, and counts for people.** What is only named in a message is left alone, or an argument `where`.
""",
    "lance": """\
Each sample was drawn before anybody looked at its mutants, and the intervals of the three overlap: no gain is shown.
Seed 97 met 516 tests of the suite of commit 62a0f057 (29 files, none of races, kills, power or stores), so its row
tells the least; our own tests have not been asked. The survivors of seed 61 met all tests, and our own notice 15 of the
19 that count. What the survivors are about:

- **Building indexes, which only Lance does: half of them.** Limits of memory, parts of a build that died, settings of
  full text; of seed 97 again 9: advice, times, rows that were deleted, settings that are chosen. The suite asks for
  limits of builds, dead parts and orphans of indexes since; four of seed 61's survivors are noticed (tried by name, or
  by hand).
- **Metadata that another tool wrote**: some were an error of Python's, or hid a restore. They are refused, or not
  believed.
- **Bugs that attacks on the indexes found**: the suite has vectors with NaN beside those that are asked for, and
  negates a filter through an index.
- **Code that nobody needs**: two conditions that could not differ, and an argument that changed nothing, are gone.
""",
    "iceberg": """\
Both samples were drawn before anybody looked at their mutants. Seed 61 met 822 tests of the bare lane, but none of
effects, answers, looks, locks, operations, power, depth, scale, faults of stores, races of maintenance, or of what
happens meanwhile: its figures are the least. It is the first sample for which a test is asked whose shared fixture runs
the line of a mutant; how much of the gain over seed 29 that is, nobody has measured. What the survivors are about:

- **What other tools leave, servers, properties and clocks: 10 of the 18 of seed 61** that nobody argued. A suite of any
  format can't make these. Our own tests notice 14 of the 18, at their first tests; some of those were written after the
  survivors were read.
- **True gaps**, which the suite has tests of: findings of a sound table, the version of a table in a bucket, a table
  that is damaged and hinders another one, damage that who looks back meets, lines for other readers, wrong clocks of
  who changes a table, damaged files beside the tables, integers beyond a column.
- **Code that nobody needs**: a handler that did what the next one does, and arguments that set a field to what it is
  anyway, are gone.

The suite was not asked again about either.
""",
    "tiering": """\
Seed 251 was drawn before anybody looked at its mutants, and each survivor met all tests. It met the tests that came
after seed 211. The one that is left makes `forget` write the watermark of another pipeline after a rollback.

Seed 211 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 125aeb20. It
takes the place of a row of November 23, when all 490 mutants that there were had been tried, and the tests had been
written for them: each that was not argued was noticed, which is no guess of code that came later. Five of the 6
survivors are of such code: epochs of one process, and files that stay open, which only tests of localfile asked. There
are 27 tests of these since, written before the survivors were told, and some of a pipeline that is changed beside the
commits of others, which is the sixth. Seed 251 was the first sample to meet them.
""",
    "spi": """\
Seed 257 was drawn before anybody looked at its mutants, and each survivor met all tests, with those for what seed 251
had left among them. These ask for the class: 2 mutants are reached by no test, instead of 76. Of its four survivors
two are argued. With 36 of 38 the aim of 95 % is missed by a hair. The other two, of notes that a last attempt tells and
of the kind of an error, have tests since.

Seed 251 was drawn before anybody looked at its mutants, and each survivor met all tests. The aim is 95 %: it is not
reached, and no gain over seed 211 is shown. The five that are left are of what the contract does by itself for formats
that leave it out: a search that is tried again, limits of a build, files that stay open. Tests of engines and formats
ask for that, and the unit tests did not: of all 1,592 mutants no test of the target reached 76.

Seed 211 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 125aeb20. It
takes the place of a row of November 23 (815 of 919 mutants, 99.2 %), whose tests had been written for these mutants.
Of the 6 survivors four are of queries and indexes, which came later: how long texts and names may be, how deep queries
may be nested, and that a list of any kind is a tuple. One is of a clock that tests shift, and one was a condition that
changed nothing, and is gone. There are 72 tests of their classes since, each bound from both sides, which seed 251
met. Reading found bugs, which are mended: a query in JSON with lists in lists, or with an integer that
no float holds, was an error of Python's, and two parts of an index with one segment were told as none.
""",
    "rounds": """\
Seed 211 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 125aeb20. An
older row, of November 23, was of tests that had been written for its mutants. Of the 3 survivors two are argued, one of
them since. The third took a split without a payload for a part beside one that has some; there is a test of it since. A
bug was found, and is mended: sources that had been opened stayed open where another one could not be.
""",
    "localfile-own": """\
Seed 257 was drawn before anybody looked at its mutants, of the code as it was at commit b6e68fd0, with the tests for
what seed 251 had left and for 31 of the 65 mutants that no test had reached. Time ran out on a busy machine, so the row
tells the least: its 8 survivors met all tests once, and not once more those that were asked beside mutants which
left. The aim of 95 % is not reached, and no gain is shown. Three of the 8 are argued. The other five have tests since,
which no sample has met: a path without the end of a staged name, integers that are truncated, a disk that fails under
a footer, files that stay open in a process that gave them up, and the progress of an adoption.

Reading for seed 251 found a bug, which is mended: an epoch whose open file another process finished meanwhile was told
as a bare error of the storage where the epoch had no rows for that file, or ended it.

Seed 251 was drawn before anybody looked at its mutants, and each survivor met all tests. The aim is 95 %: it is not
reached. It was asked twice, and the second time each test that noticed had to pass without the mutant: the same 33 of
40 were noticed. Of the 7 that are left three are argued. The other four are of what another line does, too, or nobody
asks: a part of a stretch that a digest has no use for, a set that need not be frozen, rows without columns, and the
size of a staged file in S3, which its seal tells as well.

Before November 26 only modules directly in the package were taken, so there was no mutant of the file formats and of
S3, which are a third of it: 759 were tried at their first tests.

**Seed 211 was not finished**: on a busy machine 5 of the 40 that it drew at commit 125aeb20 met tests, 969 of 15 files,
which noticed 2. Of the other three one is argued, one has a test since, and one is of a request to S3, of which the
files that were not asked have tests. That is no score. Before it was drawn, modules were read for what seed 101 had
left, and bugs were found and mended, each with its test: a table whose manifests were lost twice was rebuilt by the
chain that a folder listed last; a text file of ours that was cut within a line lost these rows in a rebuild without a
word; a file that went away while a folder was listed was no folder; and the lines for DuckDB and Polars took brackets
and stars in the path of a table for a pattern.

Seed 101 was drawn of all after the tests that seed 83 led to had landed, before anybody looked at its mutants, and each
survivor met all tests, those of commit e94ee7b0. Each of the 8 survivors was read, and seven of them have tests since,
of which no sample is drawn yet: which pipelines are told, sums of bytes, folders by time, folders that go away, errors
that pass, and types of one order. The aim is 95 %, and it is not shown.

Seed 83 was drawn of all before anybody looked at its mutants, and each survivor met all tests, those of commit
fc281048, but one that needs two file systems, and had none as the runner's files lie in memory. Of its 18 survivors 3
are argued; the code of 3 was not needed, and is gone; the others have tests since: 440 of three files, which make a
table seldom or never, and take some seconds. They ask for values and their texts, lines in blocks, codecs, bounds,
partitions, copies, and what each part of a store in S3 asks of a store in memory, for the class and not for the mutant:
the 76 survivors of 253 others (seed 3, first tests alone) were read for that, too.

Writing these tests found a bug, which is mended: in a rebuilt table of CSV files, whether a column is text was looked
up in the wrong column, so that a text `007` became the number 7.
""",
    "delta-own": """\
Seed 43 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 9ef97c3b. One
of the 3 survivors is argued; of the other two (a table without properties, a host whose clock is ahead when files are
replaced) there are tests since. Before, the survivors of the suite's seed 31 were read, and their classes are tested
value by value: what delta-rs raises and how often it is asked, panics, places, names of files, logs with gaps,
entries of other types than the protocol has, texts of partitions, and what a history and a commit tell.

Bugs that were found, and are mended: an entry of the log whose actions have other types than those of the protocol, or
that is nested too deep, and a partition value of another type ended the changes and the feed with an error of Python's.
""",
    "lance-own": """\
Both samples were drawn before anybody looked at their mutants, and each survivor met all tests, those of their
commits. Of those that nobody had looked at in seed 7, of which 500 mutants met the first of the new tests before, 40
of 43 (93.0 %) and 38 of 40 (95.0 %) were noticed. What the 732 tests of eight files ask for value by value: what
pylance raises and is told, commits and syncs one by one, versions and branches that it does not list, columns that
were renamed, widened or cast, orphans by path and age, settings of indexes at their bounds, plans that do not fit any
more, records of parts, and what a search asks. Of the survivors two are argued, and of the other five there are tests
since.

Bugs of the indexes that were found by comparing rows with a plain scan, and are mended:

- Of segments whose rows a compaction had moved, with the indexes left for later, a merge made one of vectors that
  found nothing, without an error, and one of text that failed each search.
- Many rows with an infinite product, or with a length below all floats, hid all others from a search by vectors.
- A phrase found rows that have any piece of it, where an index keeps pieces of words. It is refused.
- A column that another tool had cast was nulls in a table's changes. They are refused.
- Lance's own index of moved rows was listed as one of the table's, and kept rows from being merged.
- A record of a part of an index with a list in an object's place ended a build.
""",
    "iceberg-own": """\
Seed 251 was drawn before anybody looked at its mutants, and each survivor met all tests. The aim is 95 %: it is not
reached, and the intervals of the samples overlap. Three of the 8 that nobody argued are in `foreign_tables`, which
makes tables for the suite and came after seed 83: no test of the plugin's own ran it. Samples after this one leave it
out, as they do other code of tests. Of all 3,867 mutants no test of the plugin's own reached 346, of which 251 are
there.

The older samples were drawn and asked in the same way. One of the 40 of seed 83 could not be made. Those that seeds 73,
79 and 83 left are argued or have tests since. What the survivors are about:

- **Who comes second**: what is asked a second time, by a thread beside another, or at the edge of a batch.
- **Errors of others**: each handler got a test that another error passes it; how SQLite is asked, footers that can't be
  read, half a document.
- **Values, one by one**: filters, promotions, histories, expiry, times, splits, folders, partition values, files by
  their URI, names that files had; more than 500 tests of five files.
- **Code that only tests use, or that pyiceberg has itself**: `foreign_deletes` are 2 of seed 43; checks are gone.

Bugs that were found, and are mended: a property of a table that is no number ended each commit in the middle, as one
whose outcome nobody knows; a number of another writer in a snapshot's summary ended the history; the end of a secret
that begins as another value does was told; and a filter by a number beyond all floats ended the plan, of which the
suite has a test now.
""",
    "delta": """\
The rows are of seeds 29, 31 and 61, each drawn before anybody looked at its mutants. Seed 61 left out the tests that
are named under Iceberg, so it is the least. It is 68 % at least, after 60 % of seed 31; the intervals overlap. Our own
tests notice 9 of the 12 survivors that nobody argued. What the survivors are about:

- **Options of the plugin, settings of the store, and what other tools leave in a log: 10 of seed 29.** The suite can't
  know of them. Our own tests noticed eight; now they ask for the log, entry by entry, and for bounds and filters, value
  by value.
- **What the contract leaves open: 5.** When the newest version came, how much memory a table may take, whether bounds
  of floats are kept. Our own tests noticed two.
- **Drops in the middle of a commit: 2.** They have tests of our own, which drop the table right before delta-rs writes.
- **True gaps: 2.** The suite reads the changes and the feed of a table that was dropped and made anew, and asks for the
  files of many columns for other readers. It got tests of partitions, of buckets, and of a table that is made twice.
- **Guards that were made twice, and code that nobody needs: 2, and three of seed 31.** They are gone.
- **Words of messages: 2.** What was only told is an argument `why` now.

Bugs that were found, and are mended: a version of which no entry of the log is left was told as an error of the
storage; and a table was refused once delta-rs had set a property, as it names the feature of variants then. 78 lines of
`survivors.toml` were written between seeds 29 and 31, from the list of all mutants that swap statements or operands,
drop `strict=` or widen an `except`, without a run of any of them.
""",
}
_HEAD = """# Mutants

`make test-mutants` makes one small mistake in correct code, runs the tests that reach the mistake, and says which
test noticed. A mistake that no test notices is a survivor: the suite lacks a test, or the mistake changes nothing
that a caller could tell. `make test-mutants ARGS="TARGET --docs"` writes what is known of a target into a summary of
its own in `docs/proof/mutants/`, and this page from all of those.

## How it is done

- **Operators** work on the syntax tree of functions: drop a call, drop a sync, drop a guard, skip a check, negate a
  condition, swap two statements or two arguments, off by one, another exception, widen an `except`, drop a handler,
  forget a field, cache a fresh look. Messages, log lines, asserts and failpoints are left alone, with the arguments
  `where`, `why`, `fix` and `noun`, which are parts of messages, and so is what runs as a module is imported.
- **One process** imports everything and collects the tests once. Each mutant gets a fork of it, in which the code of
  its function is exchanged. Interpreters that a test starts take the mutant from an import hook, so killed and racing
  processes have it, too.
- **The control** comes first: all tests run once with each function exchanged for its own code, compiled in the same
  way. A test that fails then is left out. The same run records the lines that each test reaches.
- **A mutant meets** at first the cheap tests of its line, those first that noticed most so far. Survivors then meet
  all other tests that reach their lines, and all tests that start processes, {together} mutants in one fork; where a
  test fails, halves are put to it, down to each. One that was noticed may have hidden another one, so who is left
  meets the tests of before once more. Until November 28 it did not, and of seed 223 one was overlooked so.
- **A test that fails** has noticed a mutant only where the same tests pass right then without it, and one that a
  mutant met alone fails with it once more. A test that needs another one before it, or fails now and then, says nothing
  of a mutant. Until seed 251 this was not looked at: only tests that failed in their usual order were left out.
- **Some tests first**: `--tests REGEX --together` asks the named tests of many mutants at once. Who passes them still
  waits for all the others.
- **A test that does not end** counts as one that noticed. Its limit is half a minute and fifteen times its usual
  time.
- **Samples** are drawn by a hash of seed and mutant. `--sample COUNT --seed SEED` tries the first so many of them
  until each was noticed or has met all its tests, and tells the score of these alone, with the interval that Wilson's
  formula gives for the score of all.
- **Resuming**: results are appended to `artifacts/mutants/`. A run goes on where another ended. A result counts only
  for the text of the function for which it was found. Where these files are lost, `--recall` takes what the summary of
  a target tells of code that is still the same, and `--docs --recall` puts into it what became of its survivors since.

A survivor that nobody could notice has a line in `tests/mutants/survivors.toml` that says why, and counts neither
way. A line about a mutant that is not there, or that a test notices, is an error. The suite runs in its bare lane,
without Spark. Survivors that our own unit tests notice are counted apart, under "ours": an author of a format does not
have them. A mutant that has not met all tests yet counts as a survivor, so the tests that are left can only raise the
score. Feather and localfile share the manifest kit. A mutant of the kit counts as noticed when the suite notices it
on either of them, so a module of the kit has the same score in both.
"""

_UNASKED = """\
## What the suite alone can't ask

The suite knows no format. The 49 survivors of the suite's seed 61 that count were read once more, and sorted by what
the suite does not ask. One person sorted them: it is a judgement, of three samples of 40.

| what the mutant is about | Delta | Iceberg | Lance | can a suite of any format ask? |
|---|---:|---:|---:|---|
| documents that other tools, or other versions of a library, wrote | 4 | 6 | 2 | no |
| options, settings and properties that one format has | 0 | 2 | 3 | no |
| a catalog behind a server | 0 | 1 | 0 | no |
| errors and panics of the format's library, and what it leaves where a process dies in it | 2 | 2 | 1 | no |
| speed, memory, statistics for others | 1 | 1 | 3 | no: the rows are the same |
| words, and which of two errors that are both right | 0 | 0 | 4 | no |
| what the contract leaves open: which types and properties a format takes | 2 | 1 | 0 | no |
| nothing that anybody could tell | 0 | 1 | 2 | no |
| for tests of the power, which the run left out | 1 | 1 | 0 | yes |
| asked since: what a repair leaves, limits of builds, parts of builds that died | 0 | 2 | 4 | yes |
| not asked: a drop beside a change, or cut off in a store; a repair by a wrong clock | 2 | 1 | 0 | yes |
| together | 12 | 18 | 19 | |

So the suite can't ask 9 of the 37 mutants of Delta that count, 14 of 37 of Iceberg, and 15 of 39 of Lance: of these
samples it could notice 76 %, 62 % and 62 % at most, and the aim of 95 % is one for it and our own tests together.
"""


def page(folder: Path = SUMMARIES) -> str:
    """Of all targets with a summary there."""
    from laketier_verification.mutants.loop import TOGETHER

    # The kit's own tests are asked about survivors of Feather, which are no fair sample of the kit.
    known = [summary for summary in summaries(folder) if summary.target in _ABOUT]
    parts = [_HEAD.format(together=TOGETHER), _table(known), _UNASKED]
    for summary in known:
        parts.append(f"## {summary.target}\n\nBy {_ABOUT[summary.target]}. {_sample(summary)}\n")
        if summary.earlier:
            parts.append(_earlier(summary))
        if summary.target in _NOTES:
            parts.append(_NOTES[summary.target])
        parts += [_rows(view, scores) for view, scores in summary.scores.items()]
        if _is_first_look(summary):
            file = f"{SUMMARIES.name}/{summary.target}.json"
            parts.append(f"[The file of the target]({file}) names its survivors, most of which may be noticed yet.\n")
            continue
        open_ones = [each for each in summary.survivors if not (each.why or each.ours)]
        parts.append(_survivors("Survivors that nobody argued", open_ones))
        parts.append(_survivors("Survivors that change nothing", [each for each in summary.survivors if each.why]))
    return "\n".join(parts)


def _is_first_look(summary: Summary) -> bool:
    return summary.waiting > _FEW_WAIT * summary.score.tried


def _sample(summary: Summary) -> str:
    tried = summary.score.tried
    if summary.sample is not None:
        return _drawn(summary)
    drawn = "All" if tried + summary.not_viable == summary.mutants else "A sample:"
    shared = "".join(f" {count} of those noticed only on {name}." for name, count in summary.elsewhere.items())
    if TARGETS[summary.target].by_the_suite and not summary.score.ours:
        shared += " Our own tests have not been asked about the survivors."
    return (
        f"{drawn} {tried} of {summary.mutants} mutants; {summary.not_viable} could not be made. Of the survivors, "
        f"{summary.waiting} have not met all tests yet.{shared} At commit {summary.commit} of {summary.date}."
    )


def _drawn(summary: Summary) -> str:
    assert summary.sample is not None
    score, sample = summary.score, summary.sample
    low, high = score.interval
    shared = "".join(f" {count} of them on {name} alone." for name, count in summary.elsewhere.items())
    met = "each survivor met all tests that reach it"
    found = f"{score.noticed} of {score.tried - score.equivalent}, so between {low:.0f} and {high:.0f} % of all"
    if summary.waiting:
        met = f"{summary.waiting} of the survivors have not met all tests yet"
        found = f"at least {score.noticed} of {score.tried - score.equivalent}, so at least {low:.0f} % of all"
    return (
        f"A sample of {sample.count} of {summary.mutants} mutants, drawn with seed {sample.seed}, and {met}; "
        f"{summary.not_viable} could not be made, and {score.equivalent} are argued. Noticed: {found}, "
        f"with {SURE:.0%} confidence.{shared} At commit {summary.commit} of {summary.date}."
    )


def _earlier(summary: Summary) -> str:
    """Each sample is drawn anew, so a mutant that a test was written for counts no more than any other."""
    lines = [
        "| sample | of | drawn | noticed | argued | of the rest | of all | by our own tests, too |",
        "|---|---|" + "---:|" * 6,
    ]
    told: list[Earlier | Summary] = [*summary.earlier, summary]
    for each in told:
        assert each.sample is not None
        score, (low, high) = each.score, each.score.interval
        least = "at least " if each.waiting else ""
        of_all = f"at least {low:.0f} %" if each.waiting else f"{low:.0f} to {high:.0f} %"
        lines.append(
            f"| seed {each.sample.seed} | {each.commit[:8]}, {each.date} | {score.tried} | {least}{score.noticed} "
            f"| {score.equivalent} | {least}{score.percent:.1f} % | {of_all} | {least}{score.with_ours:.1f} % |"
        )
    return "\n".join(lines) + "\n"


def _table(known: Iterable[Summary]) -> str:
    lines = [
        "## Scores\n",
        _OF_ROWS,
        "| code | of | mutants | tried | noticed | argued | noticed of the rest | by our own tests | with them |",
        "|---|---|" + "---:|" * 7,
    ]
    for summary in known:
        name, score = summary.target, summary.score
        of_all = f"{score.percent:.1f} %"
        if summary.sample is not None:
            low, high = score.interval
            of_all += f" (of all: {low:.0f} to {high:.0f} %)"
            if summary.waiting:
                of_all = f"at least {score.percent:.1f} % (of all: at least {low:.0f} %)"
        elif _is_first_look(summary):
            of_all = f"first look: {of_all}"
        lines.append(
            f"| [{name}](#{name}) | {summary.commit[:8]}, {summary.date} | {summary.mutants} | {score.tried} "
            f"| {score.noticed} | {score.equivalent} | {of_all} | {score.ours} | {score.with_ours:.1f} % |"
        )
    return "\n".join(lines) + "\n"


def _rows(title: str, scores: Mapping[str, Score]) -> str:
    lines = [f"| {title} | tried | noticed | argued | of the rest | ours | with ours |", "|---|" + "---:|" * 6]
    for name, score in scores.items():
        shown = f"`{name}`" if "_" in name or "." in name else name
        counts = f"{score.tried} | {score.noticed} | {score.equivalent} | {score.percent:.1f} %"
        lines.append(f"| {shown} | {counts} | {score.ours} | {score.with_ours:.1f} % |")
    return "\n".join(lines) + "\n"


def _survivors(title: str, survivors: Sequence[Survivor]) -> str:
    if not survivors:
        return f"{title}: none.\n"
    lines = [f"{title}:\n"]
    for each in survivors:
        change = f"{_code(each.before)} → {_code(each.after)}"
        reason = f". {each.why}" if each.why else ""
        lines.append(f"- `{each.module}.{each.function}`, {each.operator}: {change}{reason}")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
