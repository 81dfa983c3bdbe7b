"""A builder of index parts whose process dies. In a module of its own: a spawned process imports it."""

from __future__ import annotations

import os
import signal

from laketier.spi import BuiltIndexPart, IndexPart, LakeIndexBuilder


class DyingBuilder(LakeIndexBuilder):
    def build(self, part: IndexPart) -> BuiltIndexPart:
        if part.number:
            os.kill(os.getpid(), signal.SIGKILL)
        return BuiltIndexPart("p", part, "s", 1, "", part.rows, 1, "")
