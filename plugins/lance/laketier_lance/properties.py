"""Changing properties of a dataset: a `Merge` of the fragments that are there, as a round is, without any new one. So
it and a round never bury each other's metadata, and whoever comes second looks again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from laketier.kit.pinned_folder import pinned_folder
from laketier.spi import Conflict, SetProperty, TableError, TableInfo, TablePath
from laketier_lance.dataset import lance_errors, open_dataset, reason
from laketier_lance.durable import local_versions, make_durable, remove_version
from laketier_lance.options import LanceOptions
from laketier_lance.private import with_metadata, with_plain_paths
from laketier_lance.state import erased_in
from laketier_lance.store_drops import take_back, was_dropped, witness
from laketier_lance.table import DESCRIPTOR, ERASED, descriptor_metadata, metadata_of, owned, table_info

if TYPE_CHECKING:
    from lance import LanceDataset

_ATTEMPTS = 100


def set_properties(path: TablePath, location: str, options: LanceOptions, changes: Sequence[SetProperty]) -> None:
    """Make all changes in one commit, or none. Driver. Raises `TableChanged`, `TableNotFound`, `Conflict` and
    `TableError`."""
    from lance.commit import CommitConflictError

    why, storage = "", options.storage_options()
    open_dataset(location, storage)  # there is none: told as such, and not as dropped meanwhile
    for _ in range(_ATTEMPTS):
        with ExitStack() as stack:
            is_in_place = stack.enter_context(pinned_folder(local_versions(location)))
            dataset = open_dataset(location, storage)
            info = table_info(path, dataset, location)
            properties = dict(info.descriptor.properties)
            for change in changes:
                properties = change.applied_to(properties, where=str(path))
            if properties == info.descriptor.properties:  # also who made the change may have been killed then
                make_durable(location, dataset.version)
                return
            witnesses = stack.enter_context(witness(location, storage, dataset))
            before = dataset.version
            try:
                version, transaction = _commit(dataset, info, properties, options)
            except CommitConflictError as error:
                why = reason(error)
                continue
            except lance_errors() as error:
                raise TableError("the properties could not be changed", where=location, why=reason(error)) from error
            if not is_in_place():
                remove_version(location, version, transaction)
                raise Conflict("the table was dropped meanwhile", where=location)
            if was_dropped(location, storage, dataset, witnesses, before):
                take_back(location, storage, version, transaction)
                raise Conflict("the table was dropped meanwhile", where=location)
        make_durable(location, version)
        return
    raise Conflict("other commits came first each time", where=location, why=why, fix="Try again.")


def _commit(
    dataset: LanceDataset, info: TableInfo, properties: dict[str, str], options: LanceOptions
) -> tuple[int, str]:
    """The version, and the id of its transaction."""
    import lance
    from lance import LanceOperation

    document = descriptor_metadata(replace(info.descriptor, properties=properties))
    metadata = {**owned(metadata_of(dataset), info.table_uuid, info.location), DESCRIPTOR: document}
    erased = erased_in(dataset, metadata_of(dataset), info.location)
    if erased is not None:
        metadata[ERASED] = str(erased).encode()
    schema = with_metadata(dataset.lance_schema, metadata)
    present = with_plain_paths(fragment.metadata for fragment in dataset.get_fragments())
    transaction = lance.Transaction(
        read_version=dataset.version,
        operation=LanceOperation.Merge(present, schema, preserves_nullability=True),
    )
    committed = lance.LanceDataset.commit(
        dataset, transaction, storage_options=options.storage_options(), max_retries=0
    )
    return int(committed.version), str(transaction.uuid)
