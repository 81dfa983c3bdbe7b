"""Files of a table that something wrote over. Whoever looks at the table then gets an answer, or an error of laketier's
that tells of damage: never the error of a library, and none that stands for a race, as rounds are tried again then.
What a reader may be told is the matter of `test_torn`. Files are put back as they were; no library has to notice it at
once."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.kit.manifests.document import encode
from laketier.spi import (
    AddColumn,
    BucketSpec,
    Conflict,
    Feature,
    LaketierError,
    PartitionField,
    TableNotFound,
    UnknownOutcome,
)
from laketier_conformance import answer_types, apart
from laketier_conformance.children import Child
from laketier_conformance.expect import expect, goes_well, told
from laketier_conformance.forged import forged, is_sealed, resealed
from laketier_conformance.lake import Lake, Table, batch, ids_of, read_plan, token
from laketier_conformance.outside import contents, everything, local_folder, local_path, restore, touched


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1 if content else 0]) + content[middle + 1 :]


HARMS: Mapping[str, Callable[[bytes], bytes]] = {
    "with one bit of another value": _flipped,
    "with bytes behind its end": lambda content: content + b"}\n",
    "full of bytes that are no text": lambda content: b"\xff\xfe" * (1 + len(content) // 2),
    "full of brackets": lambda _: b"[" * 100_000,
    "an empty document": lambda _: b"{}\n",
}
_ROW = 32 * 1024
"""Bytes of a text, before it is written in hexadecimal digits."""
MOST = 30
"""Pairs of a file and a harm that one run tries."""


def _siblings(files: Mapping[Path, bytes]) -> list[tuple[Path, Path]]:
    """Each file, and one of the same folder and suffix that comes before it."""
    kinds: dict[tuple[Path, str], list[Path]] = {}
    for file in sorted(files):
        kinds.setdefault((file.parent, file.suffix), []).append(file)
    return [pair for kind in kinds.values() for pair in zip(kind[1:], kind, strict=False)]


def _looks(table: Table) -> dict[str, Callable[[], object]]:
    def committer() -> None:
        opened = table.committer()
        try:
            state = opened.open()
            state.watermark("p")
            # It looks at commits of others, too, and says so where one of them can't be told from its own.
            with suppress(UnknownOutcome):
                state.landed("nobody's")
        finally:
            opened.close()

    looks: dict[str, Callable[[], object]] = {"it is read": table.read, "a round begins": committer}
    looks["it is created again"] = lambda: table.lake.create_amid_faults(table.info.schema)
    if table.lake.declares(Feature.HISTORY):
        looks["its history is listed"] = lambda: table.history.snapshots(9)
    if table.lake.declares(Feature.ORPHAN_COLLECTION):
        looks["its orphans are listed"] = lambda: table.lake.storage.maintenance(table.info).orphans(1 << 50)
    return looks


def _looks_back(table: Table) -> Mapping[str, Callable[[], object]]:
    """Those that read what is not the newest: older snapshots, and changes."""
    looks: dict[str, Callable[[], object]] = {}
    if table.lake.declares(Feature.TIME_TRAVEL, Feature.HISTORY):
        oldest = table.history.snapshots(9)[-1].snapshot_id
        looks["an older snapshot of it is read"] = lambda: table.read(snapshot_id=oldest)
    if table.lake.declares(Feature.INCREMENTAL_READ):
        bounds = table.changes.versions()
        looks["its changes are read"] = lambda: read_plan(
            table.source, table.changes.plan(bounds.earliest, bounds.latest, skip_changes=True)
        )
    return looks


def _looks_of_all_kinds(table: Table) -> Mapping[str, Callable[[], object]]:
    """Those that take what a document says further: into older snapshots, changes, and the next commits. The table is
    another one then."""
    mark = table.watermark()
    epoch = 0 if mark is None else mark.token.epoch + 1

    def commit() -> None:
        # That its newest snapshot is not the newest any more is a conflict, and nothing is published.
        with suppress(Conflict):
            table.append(epoch)

    return {**_looks(table), **_looks_back(table), "a round is published": commit}


def _judge(what: str, looks: Mapping[str, Callable[[], object]]) -> None:
    for doing, look in looks.items():
        try:
            look()
        except (Conflict, UnknownOutcome) as error:
            raise AssertionError(f"{what}, and {doing}: an error that tells of a race: {told(error)}") from error
        except TableNotFound as error:
            raise AssertionError(
                f"{what}, and {doing}: an error that says that there is no table, where whoever asks makes one anew: "
                f"{told(error)}"
            ) from error
        except LaketierError:
            pass
        except Exception as error:
            raise AssertionError(f"{what}, and {doing}: no error of laketier's, but {told(error)}") from error


def _some(before: Mapping[Path, bytes]) -> list[tuple[Path, str]]:
    """Files and harms, the oldest files first, each with another harm than the one before. What this process has mapped
    into its memory is left out: if it were cut short, the process would end by a signal."""
    mapped = _mapped()
    files = sorted(
        (file for file in before if str(file.resolve()) not in mapped), key=lambda file: file.stat().st_mtime_ns
    )
    pairs = [(file, harm) for file in files for harm in HARMS]
    stride = 1 + len(pairs) // MOST
    stride += stride % len(HARMS) == 0  # or each file would meet the same harm
    return pairs[::stride]


def _mapped() -> set[str]:
    """Paths, as the kernel has them; none where it does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    return {line.split(maxsplit=5)[5] for line in lines if line.count(" /")}


def _two_commits(table: Table, *first: int) -> None:
    table.append(0, first or ids_of(0))
    if table.lake.declares(Feature.ADD_COLUMN):
        table.lake.storage.catalog().alter_table(table.path, [AddColumn(pa.field("extra", pa.int64()))])
    else:
        table.append(1)


def _hinders_no_other(what: str, damaged: Table, other: Table) -> None:
    """A table that is damaged stays its own business."""
    with goes_well(f"{what}, and another table of the warehouse is read"):
        expect(other.ids, ids_of(0), f"{what}, and another table of the warehouse is read: its rows")
    with goes_well(f"{what}, and the tables of the warehouse are listed"):
        listed = damaged.lake.storage.catalog().list_tables()
    assert other.path in listed, f"{what}, and the tables are listed: another table is not among them, found {listed}"


def test_each_file_is_written_over(table: Table, unproven: Callable[[str, str], None]) -> None:
    """Each in turn: the newest ones and the oldest, metadata and data. Every other one also meets who looks back, and
    who has to do with another table alone. That one is dropped beside the damage at last."""
    _two_commits(table)
    other = table.lake.create(name="db.other")
    other.append(0)
    root, home = local_folder(table.info.location), local_folder(other.info.location)
    if root is None:
        unproven("damaged files", "the table is in no local folder")
    before = contents(root)
    looks, back, pairs = _looks(table), _looks_back(table), _some(before)
    if not pairs:
        unproven("damaged files", "the table's folder has no file")
    is_apart = root is not None and home is not None and not home.is_relative_to(root)
    for number, (file, harm) in enumerate(pairs):
        apart.write(file, HARMS[harm](before[file]))
        what = f"{file.name} is {harm}"
        _judge(what, {**looks, **back} if number % 2 else looks)
        if is_apart and number % 2:
            _hinders_no_other(what, table, other)
        if is_apart and number == len(pairs) - 1 and table.lake.declares(Feature.DROP_TABLE):
            _judge(what, {"another table is dropped": lambda: other.lake.storage.catalog().drop_table(other.path)})
        restore(root, before)


def test_each_file_beside_the_tables_is_written_over(
    table: Table, children: Callable[[int], list[Child]], unproven: Callable[[str, str], None]
) -> None:
    """What a warehouse keeps for all of its tables, such as a database that is its catalog. One that is kept open may
    go on with what it knew. A process that was not there sees that all is as it was, once it is put back."""
    _two_commits(table)
    root, home = local_folder(table.info.location), local_folder(table.lake.location)
    if root is None:
        unproven("damaged files beside the tables", "the table is in no local folder")
        return
    whole, own = contents(home), contents(root)
    beside = {file: content for file, content in whole.items() if file not in own}
    looks = _looks(table)
    looks |= {"the tables are listed": lambda: table.lake.storage.catalog().list_tables()}
    looks |= {"its version is asked for": lambda: table.lake.storage.catalog().table_version(table.path)}
    for file, harm in _some(beside):
        apart.write(file, HARMS[harm](beside[file]))
        _judge(f"{file.name} is {harm}", looks)
        restore(home, whole)
    (child,) = children(1)
    answer = child.ask(table.lake, "tell", table=str(table.path), what="rows")
    assert "told" in answer, f"all is as it was, and the table is read in another process: found {answer}"
    found = sorted(row[0] for row in answer["told"]["rows"])
    expected = ids_of(0) if table.lake.declares(Feature.ADD_COLUMN) else ids_of(0) + ids_of(1)
    expect(found, expected, "the rows, where all is as it was")


def _ways_to_lose(home: Path, rows: Iterable[Path]) -> list[Path]:
    """Each folder and file below a warehouse that is not on the way to a file of ``rows``. What lies in such a folder
    is lost with it."""
    on_the_way = {each for file in rows for each in (file, *file.parents)}
    found = []
    for folder in sorted(each for each in on_the_way if each.is_relative_to(home) and each.is_dir()):
        found += sorted(each for each in folder.iterdir() if each not in on_the_way)
    return found


def test_what_leads_to_the_rows_is_lost(table: Table, unproven: Callable[[str, str], None]) -> None:
    """By a backup that left it out, or by a hand that tidied up: a folder or a file beside the rows, each in turn.
    Whoever makes sure that there is a table, as each new query does, gets the one with its rows, is refused, or gets a
    new one in another place. One in the place of these rows would be dropped with them, and somebody looks for them."""
    home = local_path(table.lake.location)
    if home is None:
        unproven("lost metadata", "the warehouse is on no local disk")
        return
    draw = random.Random(0)
    for epoch in range(2):  # what is large is rows
        rows = batch(ids_of(epoch)).set_column(1, "name", pa.array([draw.randbytes(_ROW).hex() for _ in ids_of(epoch)]))
        table.publish_arrow([rows], token(epoch))
    before, whole = table.ids, contents(home)
    files = [file for file, content in whole.items() if len(content) > _ROW]
    if not files:
        unproven("lost metadata", "the table's rows are in no file below the warehouse")
        return
    aside = home.with_name(f"{home.name}-aside")
    for lost in _ways_to_lose(home, files):
        lost.rename(aside)
        what = f"{lost.relative_to(home)} is lost, and the files of the rows are there"
        doing = f"{what}, and a table of this name is made and dropped"
        with suppress(LaketierError), goes_well(doing, but=(LaketierError,)):
            made = table.lake.create(name=str(table.path))
            if made.ids != before:
                table.lake.storage.catalog().drop_table(table.path)
        gone = [file.relative_to(home) for file in files if not file.exists()]
        expect(gone, [], f"{doing}: files of the rows that are gone")
        _put_back(aside, lost)
        restore(home, whole)  # what was made beside it may be the log of a database
    with goes_well("all is as it was, and the table is read"):
        expect(table.ids, before, "all is as it was: rows")


def _put_back(aside: Path, lost: Path) -> None:
    if lost.is_dir():
        shutil.rmtree(lost)
    else:
        lost.unlink(missing_ok=True)
    aside.rename(lost)


def test_each_file_is_another_of_its_kind(table: Table, unproven: Callable[[str, str], None]) -> None:
    """As a restore or a script leaves it that mixed names up: each is whole, in the place of another one. Whoever looks
    need not see it, but no error tells of a race, and none is a library's."""
    _two_commits(table)
    table.append(1)
    root = local_folder(table.info.location)
    if root is None:
        unproven("files in each other's place", "the table is in no local folder")
    before = contents(root)
    looks = _looks(table)
    for file, other in _siblings(before):
        apart.write(file, before[other])
        _judge(f"{file.name} holds what {other.name} held", looks)
        restore(root, before)


LAYOUTS: tuple[Mapping[str, Any], ...] = tuple(
    {"primary_key": key, "partition_by": parts, "buckets": buckets}
    for key in (("id",), ())
    for parts in ((PartitionField("id"),), ())
    for buckets in (BucketSpec(2, ("id",)), None)
)


def _laid_out(lake: Lake) -> Table:
    """In all the ways that a format has at once, as far as it goes: the more of them, the more is in its metadata."""
    for layout in LAYOUTS:
        with suppress(LaketierError):
            return lake.create(comment="of people", properties={"acme.note": "stays"}, **layout)
    return lake.create()


def test_each_value_is_another(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """In turn, each value of the metadata that are JSON is left out, or is one of another kind, as a tool or a newer
    version writes it, and who looks at older snapshots, at changes, or commits next meets it. Where a checksum of the
    kit's guards a value, it is right wherever it is told, and the format reads the value itself: what it then answers
    is of the types that its contract says."""
    table = _laid_out(lake)
    _two_commits(table, 0)
    root = local_folder(table.info.location)
    if root is None:
        unproven("metadata of others", "the table is in no local folder")
    before = contents(root)
    looks = _looks_of_all_kinds(table)
    forgeries = forged(before)
    if not forgeries:
        unproven("metadata of others", "the table's folder has no file of JSON")
    for file, change, content in forgeries:
        for name, altered in resealed(before, file, content).items():
            apart.write(name, altered)
        answer_types.WRONG.clear()
        _judge(f"in {file.name}, {change}", looks)
        if is_sealed(content):
            assert not answer_types.WRONG, f"in {file.name}, {change}: {answer_types.WRONG[0]}"
        restore(root, before)


def test_a_path_in_a_document_leads_elsewhere(lake: Lake, unproven: Callable[[str, str], None]) -> None:
    """Of a data file that a document with the kit's checksum names, which is right wherever it is told: the path is
    another table's file, or one of the table's own documents. Nothing of it is read, listed as an orphan or deleted."""
    table, other = lake.create(), lake.create(name="db.other")
    other.append(0, ids_of(7))
    _two_commits(table)
    root, home = local_folder(table.info.location), local_folder(other.info.location)
    if root is None or home is None:
        unproven("paths in documents", "the table is in no local folder")
        return
    before, around, whole = contents(root), everything(home), table.ids
    documents = [file for file in before if is_sealed(before[file])]
    names = [str(file.relative_to(root)) for file in sorted(before.keys() - {*documents})]
    theirs = [file for file in contents(home) if not is_sealed(apart.read(file))]
    targets = [place for file in theirs for place in (str(file), os.path.relpath(file, root), file.as_uri())]
    targets += [str(file.relative_to(root)) for file in documents]
    for file, name, target in itertools.product(documents, names, targets):
        content = before[file].replace(json.dumps(name).encode(), json.dumps(target).encode())
        if content == before[file]:
            continue
        for written, altered in resealed(before, file, encode(json.loads(content)["body"])).items():
            apart.write(written, altered)
        said = f"{file.name} names {target} in place of {name}"
        _judge(said, _looks(table))
        with suppress(LaketierError):
            expect(table.ids, whole, f"{said}: rows")
        if lake.declares(Feature.ORPHAN_COLLECTION):
            with suppress(LaketierError):
                maintenance = lake.storage.maintenance(table.info)
                maintenance.remove_orphans(maintenance.orphans(1 << 50))
        expect(touched(around, everything(home)), [], f"{said}, and orphans were collected: files of the other table")
        restore(root, before)
    expect((table.ids, other.ids), (whole, ids_of(7)), "rows of two tables after paths of one led to the other")
