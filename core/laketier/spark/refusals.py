"""Errors of ours on their way through Spark's Python processes.

Spark hands an error over as the text of a traceback. What it was raised from is text in it as well, so a sentence that
was raised from another one is there twice, and pickling wraps every error but its own into `PicklingError`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager

from laketier.config import LakeConfig
from laketier.registry import complete_commands
from laketier.spi import LaketierError, Token


@contextmanager
def said_once(config: LakeConfig, token: Token | None = None) -> Iterator[None]:
    """What is raised here ends a process of Spark's: its commands in full, and nothing said before it."""
    try:
        yield
    except LaketierError as error:
        complete_commands(error, config, token)
        raise error.with_traceback(None) from None


def through_pickle(error: LaketierError) -> LaketierError:
    """``error``, so that pyspark's pickler lets it pass as it is: it re-raises what is a `pickle.PickleError`."""
    kind = type(error)
    passing = type(kind.__name__, (kind, pickle.PickleError), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    passed: LaketierError = passing.__new__(passing, *error.args)
    passed.__dict__.update(error.__dict__)
    passed.args = error.args
    return passed
