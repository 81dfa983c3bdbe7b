"""Notes the first call into each module of laketier, with the module that it came from. Python imports it at its start,
as long as its folder is on PYTHONPATH; WAYS_FOLDER says where the notes go, a file per process."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_PACKAGES = ("laketier", "pyspark_laketier")
_entered: dict[str, str] = {}
_modules: dict[CodeType, str] = {}
_OF_DATACLASSES = ("__hash__", "__eq__", "__repr__")


def _module(frame: FrameType) -> str:
    """The module of laketier that ``frame`` runs in, or nothing."""
    code = frame.f_code
    if code not in _modules:
        name = str(frame.f_globals.get("__name__") or "")
        _modules[code] = name if name.startswith(_PACKAGES) and code.co_name not in _OF_DATACLASSES else ""
    return _modules[code]


def _called(frame: FrameType, event: str, _: Any) -> None:
    if event != "call":
        return
    name = _module(frame)
    if not name or name in _entered:
        return
    caller = ""
    above: FrameType | None = frame
    while above is not None:
        module = _module(above)
        if module and above.f_code.co_name == "<module>":
            return  # it is being imported
        if module != name:
            caller = caller or module
        above = above.f_back
    _entered[name] = caller
    Path(os.environ["WAYS_FOLDER"], f"{os.getpid()}.json").write_text(json.dumps(_entered))


os.register_at_fork(after_in_child=_entered.clear)
sys.setprofile(_called)
threading.setprofile(_called)
