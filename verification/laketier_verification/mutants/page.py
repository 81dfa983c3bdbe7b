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
The aim is 95 %. The suite alone does not reach it. Each sample is drawn anew: a test that was written for survivors
of one can only raise the next. A figure that is told as the least is of a run that had to end before its survivors
had met all tests. Our own tests have not been asked about the survivors of seeds 7 and 11, and about those of seed 37
only after its row was written. Since seed 17 a test that starts processes is asked of those mutants alone that these
run, and about 110 mutants of expiry and of storage that lets a name be taken twice are not in the target any more.
**Seed 17 was not finished**: of 59 mutants drawn at commit 2a57948a the suite noticed at least 32 (54 %), and our own
tests 13 more (76 %).

Seed 223 was drawn before anybody looked at its mutants, after those that seeds 67 and 89 left had been read. It met
690 tests of 22 files, on Feather and on localfile with all that it may ask of the kit, and five more, which noticed
27. Of the 13 that were left, four are noticed by tests of the suite that were there: expired snapshots that the next
commit brings back, orphans that are young, and orphans that are gone and not told of, by files that had not been
asked; and a rollup that forgets which older files are gone, which another mutant had hidden. So 31 of 40 is what the
suite notices at least. The intervals of seeds 43 to 223 overlap: no gain is shown.

**The sample is not finished**: nine have not met all files. Of these, three are noticed by new tests, as runs of
these alone have shown, and the row does not count them: a table that is dropped is told as damaged, the handle of a
table that was taken back tells of it as if it were whole, and a final refusal is told as a race. The first of these
tests found bugs of Delta and localfile. By reading, a suite that knows no format asks nothing of the other six: who
opens files by their paths in a store; a bound of what a process keeps of large documents; a known version that is
always looked up anew; a manifest that is read once more, or is another one than was asked for, which no format does;
and a partition's value that is no text, in a document of another program. Our own tests notice all nine. So none of
them is argued, though three seemed to change nothing at first sight: a disk that dates to the second, and our own
tests, say otherwise.

Of the survivors of seeds 67 and 89 that nobody had argued, four are noticed now, as runs of these alone have shown: a
sync and the size of a staged file by tests that had not been asked, a commit whose name was free in the middle of a
history by a new question, and types that a format refuses since the Feather that declares nothing lacks one. Three are
gone with code that nobody needed. The others were not asked again. On localfile with all switched on every test of
stores had been left out, as its files stayed open, which no store allows; now it passes all 20. Reading also led to the
question whether dropping a table leaves what lay in its place before, which found a bug of Lance's.

Seed 89 was drawn before anybody looked at its mutants, and asked as seed 67 was, by 432 tests of the suite as it was at
commit fc281048: 21 of 37 is what the suite notices at least, and no gain is shown. Two of its survivors are argued
since, one was before, and one is in a function that formats of manifests do not call, which has left the target. Of the
other 15, six are of what the 16 files do not ask (syncs, a race of maintenance, partitions that are transformed, the
size of a staged file, errors of a reader), three of files that stay open, one of a store, and one of a file in the
place of a database; four are of speed, or of what no table has.

Seed 67 was drawn of the kit as it was mended after seed 61, before anybody looked at its mutants. There was time for
432 tests alone (16 files of the suite, on Feather and on localfile with all that it may ask of the kit), which all 40
met, so 26 of 39 is what the suite notices at least. The intervals of seeds 43, 61 and 67 overlap: no gain is shown. Of
the 13 that are left and count, 6 are of what one format or one storage asks for, and some have tests in files that were
not asked, such as those of types. Our own tests have not been asked.

Seed 61 was drawn before anybody looked at its mutants, and asked as seed 43 was: by 2,214 tests of three formats that
start no process, as they were at commit ca633593. The run was stopped on a busy machine when the suite had noticed 28
of 50, so its row tells the least. What was left was read then, and the suite was mended. After that the draw of the
same seed, of which four mutants are others as code had changed, had 41 of 48 noticed. That is no fair guess of all
mutants: at least four are noticed by what was written for them. What came of it is for the class:

- **An older manifest was compared with nothing.** One of a history that a restore had taken back gave other rows in
  snapshots, changes and histories, and live files were listed as orphans, and deleted. That was a bug of the kit, which
  no test of the suite could see. Now each is compared with the manifest after it, and the suite brings such documents
  back.
- **What sums up a long history** was never damaged: the suite made three commits, and a rollup comes after 32. It makes
  34 now, and damages what few commits leave, and the commits beside it.
- **Damage that is told as "there is no table"** was an error like others. Whoever gets it makes the table anew.
- **What a process remembers**: a backup that is put back was refused, and that was fair. It is fair no more where a
  process that knew nothing goes on.
- **Guards that a plain table does not reach**: forged descriptions are of a table with a key, partitions and buckets,
  paths in documents lead to other tables, changes of expired snapshots are asked for, and `file:` names no folder.
- **Two lines** argue what only takes longer, or does in vain what is done.

Seed 43 was drawn before anybody looked at its mutants. The suite was asked as far as its tests start no process and
take about a second at most (2,433 tests of three formats, of which 42 do not pass without a mutant), so 22 of 39 is
what it notices at least. Of the 17 others, the unit tests of the kit noticed 14. After that, two of the three that
were left got tests (a commit that is published once more, and documents that are not kept where a look is a request),
and one is argued, as it only takes longer. The row tells what was before.

Of the 18 survivors of seed 37 the unit tests of the kit noticed 17; one of these only changes the word for a version
in a message, which mutants leave alone since. The last one passed over an error that a rollup could not be read by.
Around it there was a real mistake: a rollup that lay in the place of another one was taken for that, as nothing
compared it with the manifest that it has to end with. A table lost files without an error. It is mended, and the code
of that mutant has changed.

Seed 37 was drawn before anybody looked at its mutants, and met the suite as it was at commit 17558514, which had tests
of the classes that seed 23 left: types that a change leads to, foreign ids of columns, looks at what lies in a table's
place, two tables of one new database, documents in each other's place, rows of a history. It noticed fewer than seed 23
did, and the intervals overlap: no gain is shown. One of its mutants is noticed by what is new (the rows of a history).
Of the 18 that are left, 8 are of what one format asks for or authors call (files that stay open, are folded or were
rebuilt, and snapshots that end, in branches of functions that all share); 4 are of mere speed, or of words for people;
5 are of races and of failures, such as a drop beside a look, or a file that a failure leaves; and one is a guard
against a version that nobody told.

Seed 23 met all its tests, those of the suite as it was at commit 5a8c8dcc. Before and while it ran, the unit tests of
the kit alone were asked of about 1,100 mutants in random order, of whole modules, and each that passed was judged.
Those that seed 23 drew were not left out of them, so the score with our own tests tells what they notice now, and is no
fair guess of all mutants: of 141 others, which nobody had tried before, the unit tests of the kit alone noticed 124
(88 %). What came of it:

- **What one format or one storage asks for** had slow tests of the whole local file format alone. Now tests of the kit
  ask for tables made of files that lie there, files that stay open, small files that are written as one, and storage
  that lets a name be taken twice, or lets a write land that failed.
- **Looks and races**: a drop in the middle, a look that fails, a rollback between two reads, a commit that fails and
  leaves its watermarks in a manifest that is kept in memory. A test of two processes that make one folder had gone
  blind: it still replaced a function that nobody called any more.
- **A true gap**: the suite plans changes over an overwrite without rows, which a feed could take for no change.
- **Code that nobody needs is gone**: an answer that nobody took, an order that a unique id does not need, a second
  parse of watermarks, a look at no files. The one mutant of seed 23 that nobody noticed was in `Manifest.read`, which
  nobody called: it is gone, too.
- **Arguments that were wrong**: 18 lines said that nobody could tell, and a test did. They are gone, so these mutants
  count as survivors of the suite that our own tests notice.
- **Operators**: none was changed. What only spares time (a garbage collector that waits) is argued by a line.

The 58 survivors of seeds 2 and 11 that count are of these classes. What was done before seed 17 was drawn is for the
whole class:

- **Guards against documents that were forged or mixed up: 14.** The suite forged a value and the checksum beside it,
  and the chain of checksums refused that before any other guard was asked. Now all that names the checksum is forged,
  too, in the newest document, and rounds, changes and older snapshots meet it. Each document also lies in another
  table's place, in both ways. Our own tests of the kit ask for the rest.
- **What one format or one storage asks for: 16.** Functions that are all about such a feature are localfile's; since
  seed 17 expiry and the look for a name that was taken twice are, too. Branches within other functions stay, and count.
- **Looks that fail where the answer is right all the same, or where another error is told: 14.** Where nobody could
  tell, a line argues it: the order of two looks, the kind of an error that becomes one refusal. A guard of rollups that
  was made twice is gone.
- **Mere speed: 7.** Rollups, documents that are kept, the head file. Our own tests count reads and writes; the suite
  asks for none of that.
- **True gaps: 4.** The suite has tests of them: metadata of columns, types of columns that are added.
- **Words of messages, and counts for people: 2.** What is only named in a message is an argument `where`.
- **In code that is gone: 1.**
""",
    "lance": """\
Seed 97 was drawn before anybody looked at its mutants, and met the suite of commit 62a0f057, which has tests of the
classes that seed 61 left: limits of builds, parts of builds that died, orphans of indexes. There was time for 516
of its tests (29 files, none of races, kills, power or stores), so 23 of 40 is what the suite notices at least.
The intervals of the three samples overlap: no gain is shown. One of the new tests notices a record of a part that is
believed. Of what is left 9 are of building indexes again: advice, times, rows that were deleted, settings that are
chosen. Our own tests have not been asked.

Of seed 61's survivors four are noticed since (tried by name, or by hand): a limit without another, vectors of several
in a row, a record that is damaged, and centres of a build that goes on.

Seed 61 was drawn before anybody looked at its mutants, and each survivor met all tests, those of the suite at commit
d8370e55. The intervals of the two samples overlap: no gain is shown. Of its 20 survivors one is argued, and our own
tests notice 15 of the other 19. Of the four that are left there are tests of ours, too: two are new, and two are of
code that had changed after ours were asked. Half of the survivors are of building indexes, which only Lance does:
limits of memory, parts of a build that died, settings of full text. One leaves a filter of several conditions to the
reader, which any format may. What the suite could see of the bugs that attacks on the indexes found is in it: vectors
with NaN beside those that are asked for. It also negates a filter through an index.

Seed 29 was the first sample that was finished. When its survivors were read, two conditions were found that could not
differ, and an argument that changed nothing: they are gone. Metadata that another tool wrote were an error of Python's,
or hid a restore: the first are refused, and the second are not believed.
""",
    "iceberg": """\
Seed 61 was drawn before anybody looked at its mutants, and met the suite as it was at the commit that is named. Asked
were its 822 tests of the bare lane but those of effects, answers, looks, locks, operations, power, depth, scale,
faults of stores, races of maintenance, and what happens meanwhile: the figures are the least, and `fsync_published`
is one that tests of the power would be asked of. It is the first sample for which the runner asks each test whose
shared fixture runs the line of a mutant: a table that a fixture of a module fills counted as the first test's alone
before, so the filters of `test_source.py` were never asked about how its files are written. How much of the gain over
seed 29 is this, and how much is the tests that came in between, nobody has measured. Of the 18 survivors that nobody
argued, 10 are of what other tools leave, of servers, properties and clocks, which a suite of any format can't make;
one handler did what the next one does, and is gone. Our own tests were asked at their first tests: they notice 14, of
which some were written after the survivors were read. What came of them in the suite: a table that is damaged hinders
no other, and who looks back meets damage, and JSON of other values. The suite was not asked again.

Seed 29: the first sample that was nearly finished. Before, most mutants had met only the first tests, so its figures
can't be compared with these. The suite was that of commit e8daf416. Of the 27 survivors two had met only the first
tests as the run ended. What came of them: two true gaps that the suite has tests of now (findings of a sound table,
the version of a table in a bucket, each tried by hand on its mutant); four more tests of the suite (lines for other
readers, wrong clocks of who changes a table, damaged files beside the tables, integers beyond a column), of which no
mutant here was tried by hand and noticed; four unit tests of the plugin for six mutants that the nearest tests had
passed; six lines that argue one; and arguments that set a field to what it is anyway are gone.

Of the 27 survivors the code of 19 was as before at commit 2afb79e5. Our own tests of that commit notice 13 of these, at
their first tests, and three of the other six are argued. The suite was not asked again.
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
Seed 211 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 125aeb20. It
takes the place of a row of November 23 (1,104 of 1,105 mutants, 96.7 %). Of the 3 survivors two are argued, one of them
since. The third took a split without a payload for a part beside one that has some; there is a test of it since.
Reading found a bug, which is mended: sources that had been opened stayed open where another one could not be.
""",
    "localfile-own": """\
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
Seed 43 was drawn for a guess of all mutants: nobody had looked at its mutants, and each survivor met all tests, those
of commit 9ef97c3b. Before, the survivors of the suite's seed 31 were read, and what was tested for them is their
classes, value by value: what delta-rs raises and how often it is asked, panics, places, names of files, logs with gaps,
entries of other types than the protocol has, texts of partitions, and what a history and a commit tell.

Reading found bugs, which are mended: an entry of the log whose actions have other types than those of the protocol, or
that is nested too deep, and a partition value of another type ended the changes and the feed with an error of Python's.

One of the 3 survivors is argued, and of the other two (a table without properties, a host whose clock is ahead when
files are replaced) there are tests since.
""",
    "lance-own": """\
Seeds 61 and 67 were drawn for guesses of all mutants, and each survivor met all tests, those of their commits. Before,
500 mutants of seed 7 were put to the first of the new tests, which noticed 364 of them. What was left was judged, and
asked for value by value since, by 732 tests of eight files: what pylance raises and is told, commits and syncs one by
one, versions and branches that it does not list, columns that were renamed, widened or cast, orphans by path and age,
settings of indexes at their bounds, plans that do not fit any more, records of parts, and what a search asks. Code that
nobody needs is gone. Of the mutants of seed 7, 6 are among those of seed 61 and 9 among those of seed 67, all noticed:
of those that nobody had looked at, 40 of 43 (93.0 %) and 38 of 40 (95.0 %) were noticed.

Attacking the indexes found bugs, which are mended. Rows were compared with a plain scan after updates, deletes,
appends, merges, renames, restores, compactions and expiry, by seven kinds of index, with nulls, NaN and empty texts:

- Of segments whose rows a compaction had moved, with the indexes left for later, a merge made one of vectors that
  found nothing, without an error, and one of text that failed each search.
- Many rows with an infinite product, or with a length below all floats, hid all others from a search by vectors.
- A phrase found rows that have any piece of it, where an index keeps pieces of words. It is refused.
- A column that another tool had cast was nulls in a table's changes. They are refused.
- Lance's own index of moved rows was listed as one of the table's, and kept rows from being merged.
- A record of a part of an index with a list in an object's place ended a build.

Of seed 61's survivors one is argued, and of the other three there are tests since (a name of a version that is asked
for twice, a place in a store, a round of the first version). Seed 67 met the mends and their tests. Of its three
survivors one is argued, and of the other two there are tests since (a table inside of another one that is dropped, and
how long a search of words took).
""",
    "iceberg-own": """\
Seed 251 was drawn before anybody looked at its mutants, and each survivor met all tests. The aim is 95 %: it is not
reached, and the intervals of the samples overlap. Three of the 8 that nobody argued are in `foreign_tables`, which
makes tables for the suite and came after seed 83: no test of the plugin's own ran it. Samples after this one leave it
out, as they do other code of tests. Of all 3,867 mutants no test of the plugin's own reached 346, of which 251 are
there.

Seed 83 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 6e693da6: 34 of
37, 91.9 %. The aim of 95 % is not reached. The intervals of the four samples overlap. One of its 40 could not be made.
Of its five survivors two are argued, and the other three have tests since, which no sample has met yet: files of
metadata in folders of their own, a partition of several columns behind one of one, and what a snapshot removed in a
manifest that was merged.

Seed 79 was drawn before anybody looked at its mutants, and met the tests that came for seed 73. Of its six survivors
one is argued. The other five were of what is asked a second time, by a thread beside another, or at the edge of a
batch, and of how SQLite is asked. Their tests were there when seed 83 was asked, and notice all five.

Seed 73 was drawn before anybody looked at its mutants, and each survivor met all tests, those of commit 209f262f. The
aim is 95 %: it is not reached, and no gain over seed 43 is shown. Before, each handler of an error got a test that
another error passes it, and what seed 61 of the suite had left got tests by its classes. One of the 8 survivors is
argued, and the other seven have tests since, which no sample has met yet: footers that can't be read, deletes behind
the first batch, what a round's snapshot says, half a document, files by their URI, types to which no column is widened,
and names that files had. Of 118 mutants of seed 77, the first tests of each, 1.5 seconds of them, noticed about two
thirds; nobody has judged the others.

Seed 43 was drawn for a guess of all mutants: nobody had looked at its mutants, and each survivor met all tests, those
of commit 9ef97c3b. Before, 688 mutants of twelve modules were tried against the first of the new tests, and 60 that
seed 41 drew against all tests that there were by then, which noticed at least 40 (67 %), as that run had to end. What
they left was judged by the module: filters, promotions, histories, expiry, times, splits, folders, partition values,
footers, and errors of a database are asked for value by value now, by more than 500 tests of five files. Checks that
pyiceberg makes itself are gone.

Reading found bugs, which are mended: a property of a table that is no number ended each commit in the middle, as one
whose outcome nobody knows; a number of another writer in a snapshot's summary ended the history; the end of a secret
that begins as another value does was told; and a filter by a number beyond all floats ended the plan, of which the
suite has a test now.

Of the 10 survivors 2 are in code that only tests use (`foreign_deletes`). One is noticed by a test that the runner did
not ask, as another test of its module had made the table (tried by hand). Of three (a row group without a number of
nulls, a limit across row groups, a catalog behind a server) there are tests since.
""",
    "delta": """\
Seed 61 was drawn before anybody looked at its mutants, and met the suite as it was at the commit that is named, but for
the tests that are named under Iceberg: the figures are the least, and `fsync_published` waits for tests of the power.
Each test was asked whose shared fixture runs the line of a mutant. It is 68 % at least, after 60 % of seed 31; the
intervals overlap. Of the 12 survivors that nobody argued, our own tests noticed 9. Reading the other three found a bug,
which is mended: a version of which no entry of the log is left was told as an error of the storage, and not as one that
is gone. Two have tests of our own since. The suite was not asked again.

Seed 31 met the tests of the suite as they were at commit bc4c65a7, and the plugin did not change up to the commit that
is named. The two samples overlap: what the suite gained is of few mutants, and most of what it does not notice are
guards against what other tools leave. Three survivors of seed 31 named code that nobody needs, which is gone since.

Seed 29 was drawn before anything was changed, and its 23 survivors that count are of these classes. What was done is
for the whole class, and seed 31 was drawn after it. 78 lines of `survivors.toml` were written between the two, from the
list of all mutants that swap statements or operands, drop `strict=` or widen an `except`, without a run of any of them.

- **Options of the plugin, settings of the store, and what other tools leave in a log: 10.** The suite can't know of
  them: how odd values of partitions are taken, which columns have statistics, a property that is damaged, a table that
  Spark replaced. Our own tests noticed eight of them; now they ask for the log, entry by entry, and for bounds and
  filters, value by value, which is cheap.
- **What the contract leaves open: 5.** When the newest version came, how much memory a table may take, whether bounds
  of floats are kept. Our own tests noticed two.
- **Drops in the middle of a commit: 2.** They have tests of our own, which drop the table right before delta-rs writes.
- **True gaps: 2.** The suite reads the changes and the feed of a table that was dropped and made anew, and asks for the
  files of many columns for other readers. While these survivors were read it also got tests of changes and feeds of
  partitions and buckets, and of a table that is created twice.
- **Guards that were made twice: 2.** One of each is gone.
- **Words of messages: 2.** What was only told is an argument `why` now.

The new tests found that delta-rs, when it sets a property, names the feature of variants in tables that name features:
laketier refused such a table, and takes it now.
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
