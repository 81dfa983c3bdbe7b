"""Every exported function and method of the SPI documents its parameters, its result and its errors."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import griffe
import pytest

import laketier.spi
from laketier.spi import errors

Documented = Callable[..., Any]


def of_class(kind: type) -> Iterator[tuple[str, Documented]]:
    """The public methods that a class defines itself."""
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) and not name.startswith("_"):
            yield f"{kind.__name__}.{name}", function


def exported() -> Iterator[tuple[str, Documented]]:
    """The functions and methods of `laketier.spi` that have parameters."""
    for name in laketier.spi.__all__:
        member = getattr(laketier.spi, name)
        found = of_class(member) if inspect.isclass(member) else [(name, member)] if inspect.isfunction(member) else []
        yield from ((name, function) for name, function in found if parameters(function))


def parameters(function: Documented) -> list[str]:
    """The names of the parameters that a caller passes."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def sections(function: Documented) -> dict[griffe.DocstringSectionKind, Any]:
    """The sections of a docstring, as mkdocstrings reads it."""
    docstring = griffe.Docstring(inspect.getdoc(function) or "")
    return {section.kind: section.value for section in docstring.parse("google", warnings=False)}


def raised(function: Documented) -> set[str]:
    """The classes that the body of a function itself raises, without those inside a ``try`` that handles errors. Of an
    error that another function of the module makes, the class that it says it returns."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    handled = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try) and block.handlers
        for line in block.body
        for node in ast.walk(line)
    }
    return {
        _class_made_by(function, node.exc.func.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
        if id(node) not in handled
    }


def _class_made_by(function: Documented, name: str) -> str:
    called = inspect.unwrap(function).__globals__.get(name)
    return str(inspect.signature(called).return_annotation) if inspect.isfunction(called) else name


def error_class(name: str) -> type[BaseException] | None:
    """The error class of that name, of the SPI or of Python."""
    found = getattr(errors, name, None) or getattr(builtins, name, None)
    return found if inspect.isclass(found) and issubclass(found, BaseException) else None


def gaps(function: Documented) -> Iterator[str]:
    """What a docstring lacks."""
    found = sections(function)
    arguments = [item.name for item in found.get(griffe.DocstringSectionKind.parameters, [])]
    if arguments != parameters(function):
        yield f"Args: has {arguments}, needs {parameters(function)}"
    returns = inspect.signature(function).return_annotation != "None"
    if returns != (griffe.DocstringSectionKind.returns in found):
        yield "Returns: is missing" if returns else "Returns: the function returns nothing"
    listed = [item.annotation for item in found.get(griffe.DocstringSectionKind.raises, [])]
    yield from (f"Raises: {name!r} is no error class" for name in listed if error_class(name) is None)
    allowed = tuple(kind for name in listed if (kind := error_class(name)))
    for name in raised(function):
        kind = error_class(name)
        if kind is None or not issubclass(kind, allowed):
            yield f"Raises: {name} is missing"


@pytest.mark.parametrize(("name", "function"), list(exported()), ids=lambda it: it if isinstance(it, str) else "")
def test_a_docstring_says_parameters_result_and_errors(name: str, function: Documented) -> None:
    assert not list(gaps(function)), name


def undocumented(path: str, most: int) -> int:
    """Read.

    Args:
        path: The path.

    Raises:
        Misspelt: Never.
    """
    if most:
        raise ValueError(path)
    return most


def test_gaps_are_found() -> None:
    assert list(gaps(undocumented)) == [
        "Args: has ['path'], needs ['path', 'most']",
        "Returns: is missing",
        "Raises: 'Misspelt' is no error class",
        "Raises: ValueError is missing",
    ]
