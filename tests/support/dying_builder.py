"""Builders of index parts for tests. In a module of its own: a spawned process imports it."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path

from laketier.spi import BuiltIndexPart, IndexPart, IndexResources, LakeIndexBuilder


class DyingBuilder(LakeIndexBuilder):
    """Its process dies, but for the first part."""

    def build(self, part: IndexPart) -> BuiltIndexPart:
        if part.number:
            os.kill(os.getpid(), signal.SIGKILL)
        return BuiltIndexPart("p", part, "s", 1, "", part.rows, 1, "")


class EnvironmentBuilder(LakeIndexBuilder):
    """Says what it sees of a variable that it asks for, before it builds and then, and in which process."""

    @property
    def environment(self) -> Mapping[str, str]:
        return {"LAKETIER_TEST_READS": "few"}

    def warm_up(self) -> None:
        self.before = os.environ.get("LAKETIER_TEST_READS")

    def build(self, part: IndexPart) -> BuiltIndexPart:
        seen = f"{self.before} {os.environ.get('LAKETIER_TEST_READS')}"
        return BuiltIndexPart("p", part, "s", 1, seen, part.rows, 1, str(os.getpid()))


class SpillingBuilder(LakeIndexBuilder):
    """Writes something out, holds some memory, and says where and in which process."""

    def within(self, resources: IndexResources) -> LakeIndexBuilder:
        return self

    def build(self, part: IndexPart) -> BuiltIndexPart:
        tempfile.tempdir = None
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"x")
        held = bytearray(part.rows)
        held[:: os.sysconf("SC_PAGESIZE")] = b"x" * len(held[:: os.sysconf("SC_PAGESIZE")])
        settings = f"{os.getpid()} {Path(file.name)}"
        return BuiltIndexPart("p", part, str(part.number), 1, settings, part.rows, 1, "")
