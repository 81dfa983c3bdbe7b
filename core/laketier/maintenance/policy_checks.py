"""Whether a policy can be kept: asked of the format before the policy is."""

from __future__ import annotations

from laketier.config.suggest import did_you_mean
from laketier.maintenance.index_policy import IndexPolicy
from laketier.registry import Lake
from laketier.spi import ConfigError, FeatureNotSupported, IndexMode, LakeIndexer, ScanRequest, TableInfo


def check_policy(lake: Lake, table: TableInfo, policy: IndexPolicy) -> None:
    """Let the format plan the index, and build nothing: so an unknown setting, or a kind that does not suit the column,
    is told now and not by whoever keeps the index. A table without rows has only its columns looked at. Driver.

    Args:
        lake: The table.
        table: The table, as it is now.
        policy: The policy.

    Raises:
        ConfigError: The column, the kind, a setting or a limit does not fit.
        FeatureNotSupported: The format builds no indexes, or not this kind, or has no such limit.
        TableError: The table could not be read.
        StorageError: The storage refused.
    """
    indexer, spec = lake.indexer(table), policy.spec
    if spec.column not in table.schema.names:
        fix = did_you_mean(spec.column, table.schema.names, f"It has {', '.join(table.schema.names)}.")
        raise ConfigError(f"there is no column {spec.column!r}", where=str(table.path), fix=fix)
    request = ScanRequest(columns=(table.schema.names[0],), limit=1)
    if any(each.rows is None or each.rows for each in lake.source(table).plan(request).splits):
        indexer.plan(spec, 1, IndexMode.REPLACE).builder.within(policy.resources)


def policy_differs(indexer: LakeIndexer, policy: IndexPolicy) -> str:
    """Why an index that is there can't be kept by its policy: it was built with other settings. Driver.

    Args:
        indexer: The indexes of the table.
        policy: The policy of an index that is there.

    Returns:
        Why. Empty where it can.
    """
    try:
        indexer.plan(policy.spec, 1, IndexMode.APPEND)
    except ConfigError as error:
        return f"{error.what}, as {error.why}" if error.why else error.what
    except FeatureNotSupported:  # nothing is ever appended to it, and so nothing differs
        return ""
    return ""
