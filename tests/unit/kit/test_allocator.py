"""Memory that was freed goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FREED = """
import ctypes, sys
from pathlib import Path
from laketier.kit.allocator import give_back_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]
if "back" in sys.argv:
    assert give_back_memory()
library.free(library.malloc(20_000_000))  # by default, so much is kept from now on
before = resident()
blocks = [0] * 300  # a list that grew would lie between them, and keep what is below it
for number in range(300):
    blocks[number] = library.malloc(60_000)
for block in blocks:
    ctypes.memset(ctypes.c_void_p(block), 1, 60_000)
for block in blocks:
    library.free(block)
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries can't be told")
def test_what_is_freed_is_given_back() -> None:
    kept, given = (
        int(subprocess.run([sys.executable, "-c", FREED, how], capture_output=True, text=True, check=True).stdout)
        for how in ("as it is", "back")
    )
    assert kept > 10_000_000
    assert given < 2_000_000
