"""``python -m benchmarks.vector_equality``: does an index of vectors in parts answer as the one of one piece?

Both have the same model. Each question is put to pylance, once with the one index and once with the other. The vectors
are hashed trigrams of paragraphs: real text, and no trained embedding. Ends with 1 where a kind that compares codes
differs by more than which of the rows that are equally far come, or finds less with a graph, by 0.01 of the recall.
With ``--ef``, a walk through a graph keeps so many candidates; by default pylance chooses (1.5 times the rows).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import lance
import numpy as np
import psutil
import pyarrow as pa
from rich.console import Console

from benchmarks import paragraphs
from benchmarks.report import Section, save, show
from laketier.registry import configure, open_lake
from laketier.spi import IndexKind, IndexMode, IndexSpec

DIMENSION = 64
FRAGMENTS = 16
PARTS = (2, 4, 8)
BEST = 10
PROBES = 8
NAME = "near"
CASES = (
    (IndexKind.IVF_FLAT, "l2", {}),
    (IndexKind.IVF_FLAT, "cosine", {}),
    (IndexKind.IVF_FLAT, "dot", {}),
    (IndexKind.IVF_PQ, "l2", {"num_sub_vectors": 8}),
    (IndexKind.IVF_PQ, "cosine", {"num_sub_vectors": 8}),
    (IndexKind.IVF_HNSW_FLAT, "l2", {"num_partitions": 4}),
    (IndexKind.IVF_HNSW_PQ, "l2", {"num_partitions": 4, "num_sub_vectors": 8}),
)
"""The other kinds are built in one part, and so as pylance builds them."""


@dataclass
class Answers:
    """Of one index, to all questions: ids and distances of the best rows."""

    ids: np.ndarray
    far: np.ndarray
    cpu: float
    """Seconds of a question, of all threads."""


def hashed(texts: list[str]) -> np.ndarray:
    """Each trigram of a text adds or takes one at the place that its checksum names."""
    vectors = np.zeros((len(texts), DIMENSION), np.float32)
    for row, text in enumerate(texts):
        data = text[:300].encode()
        sums = [zlib.crc32(data[at : at + 3]) for at in range(len(data) - 2)]
        places = np.array(sums, np.int64) % DIMENSION
        signs = np.where(np.array(sums, np.int64) & DIMENSION, 1.0, -1.0)
        np.add.at(vectors[row], places, signs.astype(np.float32))
    return vectors


def asked(location: str, questions: np.ndarray, metric: str, ef: int | None = None, probes: int = PROBES) -> Answers:
    """Put each question to pylance. ``ef``: of a graph, None for pylance's choice."""
    dataset = lance.dataset(location)
    ids, far = [], []
    began = time.process_time()
    for vector in questions:
        nearest = {"column": "v", "q": vector, "k": BEST, "nprobes": probes, "metric": metric, "ef": ef}
        rows = dataset.to_table(["id", "_distance"], nearest=nearest)
        ids.append(rows["id"].to_pylist())
        far.append(rows["_distance"].to_pylist())
    cpu = (time.process_time() - began) / len(questions)
    return Answers(np.array(ids), np.array(far, np.float64), cpu)


def compared(one: Answers, other: Answers) -> tuple[int, int, int]:
    """Questions with equal ids and distances; with equal distances, where rows that are equally far came in another
    order or another of them came; and the others."""
    equal = same = 0
    for a, b, far_a, far_b in zip(one.ids, other.ids, one.far, other.far, strict=True):
        if far_a.tolist() == far_b.tolist():
            if a.tolist() == b.tolist():
                equal += 1
            else:
                same += 1
    return equal, same, len(one.ids) - equal - same


def tenth_distances(vectors: np.ndarray, questions: np.ndarray) -> np.ndarray:
    """How far the last of the true nearest is from each question, by l2 and with each row."""
    squares = (vectors.astype(np.float64) ** 2).sum(axis=1)
    far = [np.partition(squares - 2 * (vectors @ each), BEST - 1)[BEST - 1] + (each**2).sum() for each in questions]
    return np.array(far, np.float64)


def recall(answers: Answers, tenth: np.ndarray, vectors: np.ndarray, questions: np.ndarray) -> float:
    """The share of what was found that is as near as the last of the true nearest: several rows may be equally far.
    By the rows' own vectors, as codes of ``pq`` tell other distances."""
    far = ((vectors[answers.ids].astype(np.float64) - questions[:, None]) ** 2).sum(axis=2)
    return float((far < tenth[:, None] + 0.5).mean())  # these distances are whole numbers


def run(
    folder: Path,
    vectors: np.ndarray,
    questions: np.ndarray,
    progress: Console,
    walks: tuple[int | None, ...] = (None,),
    only: str = "",
    several: tuple[int, ...] = PARTS,
    partitions: int | None = None,
) -> tuple[Section, bool]:
    """A row for each kind, metric, number of parts and of candidates of a walk (``walks``). ``only``: of kinds with
    this text. ``partitions``: of graphs; all of them are looked into."""
    values = {"lake.format": "lance", "lake.warehouse": str(folder), "lake.table": "bench.vectors"}
    (folder / "bench").mkdir(parents=True)
    location = str(folder / "bench" / "vectors.lance")
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    rows = pa.table({"id": np.arange(len(vectors)), "v": column})
    lance.write_dataset(rows, location, max_rows_per_file=-(-len(vectors) // FRAGMENTS))
    lake = open_lake(configure(values))
    section = Section(f"{len(vectors):,} vectors of {DIMENSION}, {len(questions):,} questions, the best {BEST}")
    truth = tenth_distances(vectors, questions)
    right = True
    for kind, metric, options in (case for case in CASES if only in case[0].value):
        indexer = lake.indexer(lake.load_table())
        graph = "hnsw" in kind.value
        chosen = {"num_partitions": partitions} if graph and partitions is not None else {}
        spec = IndexSpec(NAME, "v", kind, {"metric": metric, **options, **chosen})
        model = None
        single: dict[int | None, Answers] = {}
        for parts in (1, *several):
            began = time.perf_counter()
            plan = indexer.plan(spec, parts, IndexMode.REPLACE)
            builder = plan.builder.train() if model is None else replace(plan.builder, model=model)  # type: ignore[type-var]
            model = builder.model  # type: ignore[attr-defined]
            plan = replace(plan, builder=builder)
            info = indexer.publish(plan, [builder.build(part) for part in plan.parts])
            if len(info.segments) != parts:
                raise AssertionError(f"{len(info.segments)} segments, not {parts}")
            for ef in walks if graph else (None,):
                found = asked(location, questions, metric, ef, max(PROBES, partitions or 0) if graph else PROBES)
                equal, same, different = compared(single.setdefault(ef, found), found)
                hits = recall(found, truth, vectors, questions) if metric == "l2" else None
                if graph and hits is not None and recall(single[ef], truth, vectors, questions) - hits > 0.01:
                    right = False
                right = right and (graph or not different)
                section.rows.append(
                    {
                        "kind": kind.value,
                        "metric": metric,
                        "parts": parts,
                        "candidates": "" if ef is None else ef,
                        "equal": equal,
                        "others equally far": same,
                        "different": different,
                        "recall": "" if hits is None else f"{hits:.4f}",
                        "CPU, ms": f"{found.cpu * 1000:.2f}",
                    }
                )
            progress.print(f"  {kind} {metric} {parts}: {time.perf_counter() - began:.1f} s", style="dim")
    section.notes.append(f"Load of the machine at the end, over a minute: {psutil.getloadavg()[0]:.1f}.")
    return section, right


def main() -> None:
    """Compare all kinds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vector_equality", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="paragraphs of English at most (100,000)")
    parser.add_argument("--questions", type=int, default=1_000, help="questions of each kind (1,000)")
    parser.add_argument(
        "--ef", type=int, nargs="+", help="candidates that a walk through a graph keeps (pylance's choice)"
    )
    parser.add_argument("--only", default="", help="only kinds whose name has this text")
    parser.add_argument("--parts", type=int, nargs="+", default=PARTS, help="parts beside the one (2 4 8)")
    parser.add_argument("--partitions", type=int, help="of graphs, all looked into (4)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where everything goes (build/bench)")
    given = parser.parse_args()
    work: Path = given.work.resolve()
    texts = paragraphs.texts(work, paragraphs.ENGLISH, given.rows + given.questions)
    vectors = hashed(texts["text"].to_pylist())
    folder = work / "vectors"
    shutil.rmtree(folder, ignore_errors=True)
    told = Console(stderr=True)
    asked_of, questions = vectors[: given.rows], vectors[given.rows :]
    walks, parts = tuple(given.ef or (None,)), tuple(given.parts)
    section, right = run(folder, asked_of, questions, told, walks, given.only, parts, given.partitions)
    show(section, Console(width=150))
    if given.json:
        save([section], {"rows": given.rows, "ef": given.ef or []}, given.json)
    shutil.rmtree(folder)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
