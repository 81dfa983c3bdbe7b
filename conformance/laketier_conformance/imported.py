"""Import a plugin's module, ask it for its format, and tell which packages that imported, and which settings of the
process it changed:
``python -m laketier_conformance.imported <module>``. The last line of the output is the answer, as JSON."""

from __future__ import annotations

import decimal
import gc
import importlib
import json
import locale
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable

import pyarrow as pa

from laketier_conformance import started

_NUMPY = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""Before anybody imported it."""


HOOK = "laketier_format"

SETTINGS: dict[str, Callable[[], object]] = {
    "the handlers of the root logger": lambda: logging.root.handlers,
    "the level of the root logger": lambda: logging.root.level,
    "the level below which nothing is logged": lambda: logging.root.manager.disable,
    "the class of new loggers": logging.getLoggerClass,
    "the filters of warnings": lambda: warnings.filters,
    "how warnings are shown": lambda: warnings.showwarning,
    "the handlers of signals": lambda: {str(each): signal.getsignal(each) for each in sorted(signal.valid_signals())},
    "the way to start processes": lambda: multiprocessing.get_start_method(allow_none=True),
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "the decimal context": decimal.getcontext,
    "the threads": threading.enumerate,
    "the working folder": os.getcwd,
    "the path of modules": lambda: sys.path,
    "the hooks of errors": lambda: (sys.excepthook, threading.excepthook),
    "the standard streams": lambda: (sys.stdin, sys.stdout, sys.stderr),
    "the limit of recursion": sys.getrecursionlimit,
    "how often threads take turns": sys.getswitchinterval,
    "the size of the stacks of threads": threading.stack_size,
    "the folder for temporary files": tempfile.gettempdir,
    **started.limits(),
    "how NumPy takes errors": lambda: numpy.geterr() if (numpy := sys.modules.get("numpy")) else _NUMPY,
    "the garbage collector": lambda: (gc.isenabled(), gc.get_threshold()),
    "the time-out of sockets": socket.getdefaulttimeout,
    "the threads of Arrow": lambda: (pa.cpu_count(), pa.io_thread_count()),
    "the memory pool of Arrow": lambda: pa.default_memory_pool().backend_name,
}


def settings() -> dict[str, str]:
    """What a module could change for all others."""
    return {name: repr(told()) for name, told in SETTINGS.items()}


def main(module: str) -> None:
    """Tell the packages that ``module`` imports, by itself or in its hook, those of Python's own library apart; and the
    settings that it changes, before and after. Variables of the environment by their names only."""
    for name in ("laketier.registry", "laketier.spi", "laketier.config", "pyarrow.fs", "pyarrow.compute"):
        importlib.import_module(name)  # the core has these when it loads a plugin
    modules, variables, before = set(sys.modules), dict(os.environ), settings()
    imported = importlib.import_module(module)
    getattr(imported, HOOK, lambda: None)()  # which the core calls as soon as it has the module
    after, now = settings(), dict(os.environ)
    changed = {name: [before[name], after[name]] for name in before if before[name] != after[name]}
    for name in sorted({each for each, _ in variables.items() ^ now.items()}):
        changed[f"the variable {name}"] = [f"set: {name in each}" for each in (variables, now)]
    packages = {name.partition(".")[0] for name in set(sys.modules) - modules}
    told = {"packages": packages - sys.stdlib_module_names, "standard": packages & sys.stdlib_module_names}
    sys.stdout.write(json.dumps({**{name: sorted(each) for name, each in told.items()}, "changed": changed}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
