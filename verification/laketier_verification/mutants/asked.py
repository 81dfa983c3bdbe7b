"""What the suite can ask about: of the survivors of a sample, those that no suite of any format could notice, and those
that a test of the suite notices since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from laketier_verification.mutants.summary import Summary, Survivor
from laketier_verification.mutants.survivors import UNASKED, Argued, AskedSince, Beyond, asked_since, beyond

_Entry = TypeVar("_Entry", bound=Argued)


@dataclass(frozen=True)
class Asked:
    """Of one summary. ``unasked``: survivors that our own tests notice, and no suite can ask about, each with the
    reason. ``since``: those that the suite asks about since, each with the test. ``gone``: other survivors whose code
    is gone."""

    summary: Summary
    unasked: Sequence[Survivor]
    since: Sequence[Survivor]
    gone: int

    @classmethod
    def of(
        cls, summary: Summary, beyond_it: Iterable[Beyond] | None = None, since: Iterable[AskedSince] | None = None
    ) -> Asked:
        """By what ``tests/mutants/survivors.toml`` says, unless told otherwise."""
        sorted_out = _with(summary, beyond() if beyond_it is None else beyond_it)
        unasked = [replace(each, why=f"{by.about.capitalize()}: {by.why}") for each, by in sorted_out if each.ours]
        noticed = _with(summary, asked_since() if since is None else since)
        by_suite = [replace(each, why=f"{by.why} (`{by.by}`)") for each, by in noticed]
        return cls(summary, unasked, by_suite, sum(each.gone and not each.why for each in summary.survivors))

    @property
    def counted(self) -> int:
        """The mutants of the sample that nobody argued."""
        return self.summary.score.tried - self.summary.score.equivalent

    @property
    def percent(self) -> float:
        """Noticed of what the contract asks, as the sample found it."""
        return _percent(self.summary.score.noticed, self.counted - len(self.unasked))

    @property
    def percent_since(self) -> float:
        """The same, with the tests that its survivors led to."""
        noticed = self.summary.score.noticed + len(self.since)
        return _percent(noticed, self.counted - len(self.unasked) - self.gone)

    @property
    def about(self) -> Counter[str]:
        """How many are unasked, by `UNASKED`."""
        return Counter(each.why.partition(":")[0].lower() for each in self.unasked)


def table(samples: Sequence[Asked]) -> str:
    """A column for each of them."""
    rows = [(each, [str(sample.about[each]) for sample in samples]) for each in UNASKED]
    rows += [
        ("beyond the contract, together", [str(len(sample.unasked)) for sample in samples]),
        ("mutants of the sample that count", [str(sample.counted) for sample in samples]),
        ("noticed by the suite", [str(sample.summary.score.noticed) for sample in samples]),
        ("**noticed of what the contract asks**", [f"**{sample.percent:.1f} %**" for sample in samples]),
        ("noticed by tests that its survivors led to", [str(len(sample.since)) for sample in samples]),
        ("code that is gone since", [str(sample.gone) for sample in samples]),
        ("the same of today's suite", [f"{sample.percent_since:.1f} %" for sample in samples]),
        ("noticed by the suite and our own tests", [f"{sample.summary.score.with_ours:.1f} %" for sample in samples]),
    ]
    head = f"| what the mutant is about | {' | '.join(sample.summary.target for sample in samples)} |"
    lines = [head, "|---|" + "---:|" * len(samples)]
    return "\n".join(lines + [f"| {name} | {' | '.join(cells)} |" for name, cells in rows]) + "\n"


def _with(summary: Summary, entries: Iterable[_Entry]) -> Iterator[tuple[Survivor, _Entry]]:
    """What is said of survivors that nobody argued."""
    known = {(it.module, it.function, it.operator, it.before, it.after): it for it in entries}
    for each in summary.survivors:
        entry = known.get((each.module, each.function, each.operator, each.before, each.after))
        if entry is not None and not each.why:
            yield each, entry


def _percent(some: int, of: int) -> float:
    return 100 * some / of if of else 100.0
