"""Figures as tables for people and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measured, median

Row = dict[str, Any]


@dataclass
class Section:
    """One table: what was compared, the figures, and what to know about them."""

    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compared(title: str, cases: Mapping[str, Measured], baselines: Mapping[str, str]) -> Section:
    """Medians of each case, and for each baseline (column → case) the ratio of CPU-seconds to it."""
    section = Section(title)
    middle = {name: median(case.samples) for name, case in cases.items()}
    for name, sample in middle.items():
        row: Row = {"case": name, "cpu_s": round(sample.cpu, 2), "wall_s": round(sample.wall, 2)}
        for column, baseline in baselines.items():
            if baseline in middle:
                row[column] = round(sample.cpu / middle[baseline].cpu, 2)
        taken = cases[name].samples
        row["cpu_s min-max"] = f"{min(s.cpu for s in taken):.2f}-{max(s.cpu for s in taken):.2f}"
        if cases[name].bytes:
            row["MB"] = round(cases[name].bytes / 1e6, 1)
        section.rows.append(row)
    return section


def show(section: Section, console: Console) -> None:
    """Print a section."""
    table = Table(title=section.title, title_justify="left", title_style="bold")
    columns = list(dict.fromkeys(column for row in section.rows for column in row))
    for index, column in enumerate(columns):
        table.add_column(column.replace("_", " "), justify="left" if index == 0 else "right")
    for row in section.rows:
        table.add_row(*(_text(row.get(column, "")) for column in columns))
    console.print(table)
    for note in section.notes:
        console.print(f"  {note}", style="dim", highlight=False)
    console.print()


def save(sections: Sequence[Section], about: Row, path: Path) -> None:
    """Write all sections as one JSON document."""
    document = {"about": about, "sections": [vars(section) for section in sections]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def _text(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
