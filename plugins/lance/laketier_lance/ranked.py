"""The best rows of a question, in an order that is the same each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import ConfigError, CorruptTable, FeatureNotSupported
from laketier_lance.dataset import lance_errors, reading, reason, unreadable
from laketier_lance.features import FORMAT
from laketier_lance.graph_walk import as_lance_takes_it

if TYPE_CHECKING:
    from lance import LanceDataset

_ROW = "_rowid"


class Ranked:
    """Asks one version of a dataset. ``name`` is the table's, for messages."""

    def __init__(self, dataset: LanceDataset, name: str) -> None:
        self._dataset = dataset
        self._name = name

    def best(
        self, ask: dict[str, Any], measure: str, k: int, condition: str | None, *, limited: bool, descending: bool
    ) -> list[tuple[int, float]]:
        """The numbers of the ``k`` best rows, and their measures. Rows of equal measure are in the order of the table.
        Lance returns any of those that tie for the last place, so it is asked for more until the tie ends. Rows without
        a distance may take places of its answer, also the first ones."""
        total = max(1, self._dataset.count_rows())
        wanted = min(total, 2 * k + 8)
        order = "descending" if descending else "ascending"
        while True:
            told = self._asked(ask, measure, condition, wanted if limited else None)
            # A vector with NaN is infinitely far away, or has no distance; an index leaves it out, and so does this.
            table = told.filter(pc.fill_null(pc.is_finite(told[measure]), False))
            table = table.sort_by([(measure, order), (_ROW, "ascending")])
            measures = table[measure]
            done = not limited or wanted >= total or len(told) < wanted
            if done or (len(table) > k and measures[len(table) - 1].as_py() != measures[k - 1].as_py()):
                best = table.slice(0, k)
                return list(zip(best[_ROW].to_pylist(), best[measure].to_pylist(), strict=True))
            wanted = min(total, wanted * 8)

    def _asked(self, ask: dict[str, Any], measure: str, condition: str | None, limit: int | None) -> pa.Table:
        given = dict(ask)
        if "nearest" in given:
            given["nearest"] = as_lance_takes_it(given["nearest"], limit or 1)
        try:
            return self._dataset.scanner(
                columns=[measure], with_row_id=True, filter=condition, prefilter=True, limit=limit, **given
            ).to_table()
        except lance_errors() as error:
            # What pyarrow raises came while Lance read, after it had taken the query: a file is missing or damaged.
            taken = not isinstance(error, ValueError) or isinstance(error, pa.ArrowException)
            if not taken and "not found" not in reason(error).lower():
                raise ConfigError("Lance refuses the query", where=self._name, why=reason(error)) from error
            raise unreadable(self._dataset.uri, error) from error

    def rows(self, best: Sequence[tuple[int, float]], schema: pa.Schema) -> pa.Table:
        columns = schema.names[:-1]
        odd = [name for name in columns if "`" in name]
        if odd:
            raise FeatureNotSupported(
                f"search with the columns {odd}",
                format=FORMAT,
                reason="Lance finds no column with a backtick in its name",
                fix="Name the columns of the result, without these.",
            )
        found = self._fetch([row for row, _ in best], columns)
        places = pc.index_in(pa.array([row for row, _ in best], pa.uint64()), found[_ROW].combine_chunks())
        if places.null_count:
            raise CorruptTable("rows that an index names are not in the table", where=self._dataset.uri)
        rows = found.select(columns).take(places)
        measures = pa.array([measure for _, measure in best], pa.float64())
        return pa.table([*rows.columns, measures], schema=schema)

    def _fetch(self, ids: Sequence[int], columns: list[str]) -> pa.Table:
        # A condition without any value is no SQL, and no row has the number -1.
        among = f"{_ROW} IN ({', '.join(map(str, ids))})" if ids else "false"
        with reading(self._dataset.uri):
            scanner = self._dataset.scanner(columns=columns, with_row_id=True, filter=among, blob_handling="all_binary")
            return scanner.to_table()
