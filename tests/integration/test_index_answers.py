"""An index that was built in parts answers as the one that pylance builds alone, score by score; also after a stream of
epochs with appends of the index, compaction and expiry. ``benchmarks.index_equality`` does the same with more."""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from depth import sizes
from laketier.registry import Lake
from laketier.spi import IndexKind, IndexMode, IndexSpec
from laketier_verification.lakes import append, lake_at
from laketier_verification.search.answers import Agreement, Answer, agreement, answers
from laketier_verification.search.questions import KINDS, questions

lance = pytest.importorskip("lance")
pytest.importorskip("laketier_lance")

COLUMNS = ("text", "head")
QUESTIONS = 15
BEST = 50
SIMPLE = {"base_tokenizer": "simple", "with_position": True}
ICU = {"base_tokenizer": "icu", "with_position": True, "stem": False, "remove_stop_words": False}
NGRAM = {"base_tokenizer": "ngram", "with_position": True, "min_ngram_length": 2, "max_ngram_length": 2}
CHINESE = re.findall(
    r"\w+",
    """数据 湖仓 检索 索引 全文 系统 文件 内核 手册 描述 参数 返回 函数 调用 进程 线程 内存 缓存 目录 权限 用户 命令
    选项 默认 输出 输入 错误 信息 版本 网络 协议 地址 端口 连接 服务 配置 语言 编译 程序 执行 时间 日期
    字符 字符串 数组 结构 类型 图书馆 计算机 操作系统 数据库 编辑器 浏览器 的 是 在 和 与 不 可以 必须 如果 那么""",
)


def _english() -> Iterator[str]:
    """Distinct paragraphs of the standard library's own files."""
    seen = set()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for text in path.read_text(encoding="utf-8", errors="replace").split("\n\n"):
            if len(text.split()) > 15 and text not in seen:
                seen.add(text)
                yield text


def _chinese() -> Iterator[str]:
    """Words in any order. Nothing on this machine is sure to hold Chinese prose; the benchmark has it."""
    chance = random.Random(7)
    while True:
        words = chance.choices(CHINESE, weights=range(1, len(CHINESE) + 1), k=chance.randint(8, 40))
        yield "。".join("".join(words[place : place + 6]) for place in range(0, len(words), 6))


TEXTS = {"English": list(islice(_english(), 2000)), "Chinese": list(islice(_chinese(), 2000))}


class Documents:
    """A table of texts with an index of each column."""

    def __init__(self, folder: Path, language: str, options: dict[str, Any]) -> None:
        self.lake: Lake = lake_at(folder, "lance")
        self.texts = TEXTS[language]
        self.options = options
        self.asked = {
            kind: questions(
                kind,
                self.texts,
                QUESTIONS,
                columns=COLUMNS,
                chinese=language == "Chinese",
                phrases=options["base_tokenizer"] != "ngram",
            )
            for kind in KINDS
        }

    def append(self, low: int, high: int, epoch: int) -> None:
        texts = self.texts[low:high]
        ids = pa.array(range(low, low + len(texts)), pa.int64())
        columns = [ids, pa.array(texts), pa.array([each[:40] for each in texts])]
        append(self.lake, pa.record_batch(columns, names=["id", *COLUMNS]), epoch=epoch)

    def dataset(self) -> Any:
        return lance.dataset(self.lake.load_table().location)

    def index(self, parts: int, mode: IndexMode = IndexMode.REPLACE) -> int:
        """The number of segments."""
        segments = 0
        for column in COLUMNS:
            indexer = self.lake.indexer(self.lake.load_table())
            options = {} if mode is IndexMode.APPEND else self.options
            plan = indexer.plan(IndexSpec(f"{column}_idx", column, IndexKind.INVERTED, options), parts, mode)
            segments = len(indexer.publish(plan, [plan.builder.build(part) for part in plan.parts]).segments)
        return segments

    def answers(self) -> dict[str, list[Answer]]:
        snapshot = self.lake.searcher(self.lake.load_table()).at()
        return {kind: answers(snapshot, asked, k=BEST) for kind, asked in self.asked.items()}

    def alone(self) -> dict[str, list[Answer]]:
        """The answers with pylance's own indexes."""
        for column in COLUMNS:
            self.dataset().create_scalar_index(column, "INVERTED", name=f"{column}_idx", **self.options)
        return self.answers()


def _agreements(expected: dict[str, list[Answer]], found: dict[str, list[Answer]]) -> dict[str, Agreement]:
    return {kind: agreement(expected[kind], found[kind], k=BEST) for kind in KINDS}


def _answered(found: dict[str, Agreement]) -> int:
    """The questions that found rows, or 0 where none of some type did."""
    counts = {kind: each.answered for kind, each in found.items()}
    return sum(counts.values()) if all(counts.values()) else pytest.fail(f"none found anything: {counts}")


@pytest.mark.every(2)
@sizes("counts", (4,), (2, 8))
@pytest.mark.parametrize(
    ("language", "options"), [("English", SIMPLE), ("Chinese", ICU), ("Chinese", NGRAM)], ids=["simple", "icu", "ngram"]
)
def test_parts_answer_as_one_piece(
    tmp_path: Path, language: str, options: dict[str, Any], counts: tuple[int, ...]
) -> None:
    documents = Documents(tmp_path, language, options)
    for number in range(8):
        documents.append(number * 250, (number + 1) * 250, number)
    expected = documents.alone()
    for parts in counts:
        assert documents.index(parts) == parts
        found = _agreements(expected, documents.answers())
        assert {kind: said.different for kind, said in found.items() if not said.agrees} == {}
        assert _answered(found) > len(KINDS) * QUESTIONS // 2


@pytest.mark.parametrize(
    ("language", "options"),
    [pytest.param("English", SIMPLE, id="simple"), pytest.param("Chinese", ICU, id="icu", marks=pytest.mark.deep)],
)
def test_an_index_that_followed_a_stream_answers_as_a_new_one(
    tmp_path: Path, language: str, options: dict[str, Any]
) -> None:
    documents = Documents(tmp_path, language, options)
    documents.append(0, 1000, 0)
    documents.index(2)
    for epoch in range(1, 41):
        documents.append(1000 + (epoch - 1) * 25, 1000 + epoch * 25, epoch)
        if epoch % 5 == 0:
            documents.index(2, IndexMode.APPEND)
        if epoch % 20 == 0:
            documents.dataset().optimize.compact_files()
            documents.dataset().cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    found = documents.answers()
    said = _agreements(documents.alone(), found)
    assert {kind: each.different for kind, each in said.items() if not each.agrees} == {}
    assert _answered(said) > len(KINDS) * QUESTIONS // 2
