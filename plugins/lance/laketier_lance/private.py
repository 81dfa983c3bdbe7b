"""What this plugin needs of pylance that pylance keeps private. Everything else in the plugin is public API.

A `Merge` or `Overwrite` must be given a `lance.schema.LanceSchema` that keeps the field ids *and* carries new schema
metadata. pylance has no public way to make one: `LanceSchema.from_pyarrow` is documented to give ids of its own. So
`with_metadata` goes through what `LanceSchema.__reduce__` pickles (protobuf messages of the fields, and the metadata as
JSON). It checks what it gets and what it makes: when pylance changes this, a commit fails with a clear error, and never
with a wrong schema.

`data_path` is what ``DataFile.path`` gives, which makes a class of text each time that it is asked: 43 µs a file, for
each file of a table in each commit. pylance's own commit asks for it as well: `with_plain_paths` answers it with text.

`moment_of` is what ``LanceDataset.get_version`` tells, by one clock: pylance makes of it a moment of the zone of this
host, in which an hour of autumn comes twice, and does not say which one it is.

``tests/test_lance_private.py`` says what is relied on. The plugin's dependencies keep untried versions out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from laketier.spi import PluginBroken
from laketier_lance.lance_schema import field_ids

if TYPE_CHECKING:
    from lance import LanceDataset
    from lance.fragment import DataFile, FragmentMetadata
    from lance.schema import LanceSchema


def with_metadata(schema: LanceSchema, metadata: Mapping[bytes, bytes]) -> LanceSchema:
    """The same fields with the same ids, and exactly ``metadata``. Raises `PluginBroken` when pylance has changed."""
    from lance.schema import LanceSchema

    try:
        reduced: Any = schema.__reduce__()
        rebuild, (text, *fields) = reduced
        present = {key.encode(): bytes(value) for key, value in json.loads(text).items()}
        expected = {_bytes(k): _bytes(v) for k, v in (schema.to_pyarrow().metadata or {}).items()}
        plain = {key.decode(): list(value) for key, value in metadata.items()}
        made: LanceSchema = LanceSchema._from_protos(json.dumps(plain), *fields)
        known = rebuild == LanceSchema._from_protos and present == expected
        kept = field_ids(made) == field_ids(schema) and made.to_pyarrow().remove_metadata().equals(
            schema.to_pyarrow().remove_metadata(), check_metadata=True
        )
        if not (known and kept and (made.to_pyarrow().metadata or {}) == dict(metadata)):
            raise ValueError("the schema did not survive its own serialisation")
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        import lance

        raise PluginBroken(
            f"pylance {lance.__version__} keeps its schemas in a way that laketier-lance does not know",
            why=f"{type(error).__name__}: {error}",
            fix="Install a pylance that this laketier-lance allows. Nothing was committed.",
        ) from error
    return made


def data_path(file: DataFile) -> str:
    """The path of a data file, relative to the folder of data."""
    return file._path


def moment_of(dataset: LanceDataset) -> datetime:
    """When the version that is open was committed, by UTC, to the microsecond that pylance tells. Raises Lance's
    errors."""
    nanoseconds: Any = dataset._ds.current_version()["timestamp"]
    return datetime.fromtimestamp(nanoseconds // 1e9, UTC) + timedelta(microseconds=nanoseconds % 1e9 // 1e3)


def with_plain_paths(fragments: Iterable[FragmentMetadata]) -> list[FragmentMetadata]:
    """The same fragments, for a commit. Their data files tell their paths as plain text from now on, so they may be no
    one else's."""
    found = list(fragments)
    plain = _plain_data_file()
    for fragment in found:
        for file in fragment.files:
            file.__class__ = plain
    return found


@cache
def _plain_data_file() -> type[DataFile]:
    from lance.fragment import DataFile

    class PlainDataFile(DataFile):
        """A data file of which pylance's commit asks the path."""

        path = property(data_path)

    return PlainDataFile


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
