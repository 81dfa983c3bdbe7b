"""The mistakes: operators on statements and functions. Those on expressions are in `expressions`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from laketier.spi import errors
from laketier_verification.mutants.edits import Edit, called, heading, placed, replaced
from laketier_verification.mutants.expressions import of_expressions

DROP_CALL, DROP_SYNC, DROP_GUARD, SKIP_CHECK = "drop a call", "drop a sync", "drop a guard", "skip a check"
SWAP, FORGET, WIDEN, HANDLER = "swap two", "forget a field", "widen an except", "drop a handler"
EXCEPTION, CACHE = "another exception", "cache a fresh look"

_ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
_SILENT = {"failpoint", "debug", "info", "warning", "error", "critical", "exception", "log"}
"""What these do is for people or for tests: no rule of the contract speaks of it."""
_LOOK = re.compile(
    r"(^|_)(read|load|open|exists|stat|list|scandir|glob|iterdir|head|hint|current|latest|snapshot|state)"
)
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)


def edits_of(function: ast.FunctionDef) -> Iterator[Edit]:
    """All edits of a function, nested ones within."""
    if _is_empty(function):
        return
    yield from _cached(function)
    yield from _block(function, "body", function.body)


def _block(owner: ast.AST, name: str, block: list[ast.stmt]) -> Iterator[Edit]:
    for at, statement in enumerate(block):
        yield from _dropped(owner, name, block, at)
        if at + 1 < len(block):
            yield from _swapped(owner, name, block, at)
        if isinstance(statement, ast.Raise):
            yield from _raised(owner, name, block, at)
        elif not _is_silent(statement) and not isinstance(
            statement, (ast.Assert, ast.Pass, ast.Import, ast.ImportFrom)
        ):
            yield from of_expressions(statement)
        if isinstance(statement, ast.Try):
            yield from _handlers(owner, name, block, at)
        for inner in ("body", "orelse", "finalbody"):
            within = getattr(statement, inner, None)
            if isinstance(within, list) and not isinstance(statement, ast.ClassDef):
                yield from _block(statement, inner, within)
        for part in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
            yield from _block(part, "body", part.body)


def _dropped(owner: ast.AST, name: str, block: list[ast.stmt], at: int) -> Iterator[Edit]:
    statement = block[at]
    gone: list[ast.stmt] = [placed(ast.Pass(), statement)]

    def instead(operator: str, new: list[ast.stmt], text: str, line: int = statement.lineno) -> Edit:
        slots = ((owner, name, replaced(block, at, new)),)
        return Edit(operator, line, slots, texts=(heading(statement), text))

    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        to = called(statement.value)
        if not _is_silent(statement):
            yield instead(DROP_SYNC if "sync" in to else DROP_CALL, gone, "pass")
    elif isinstance(statement, (ast.AugAssign, ast.Delete)) or (
        isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Attribute, ast.Subscript))
    ):
        yield instead(FORGET, gone, "pass")
    elif isinstance(statement, ast.If) and not statement.orelse and not _is_silent(statement):
        last = statement.body[-1]
        # Only who comes to the block can notice that it is gone.
        operator, came = DROP_GUARD if isinstance(last, ast.Raise) else SKIP_CHECK, statement.body[0].lineno
        yield instead(operator, gone, f"pass  # not: {heading(last)[:60]}", came)
        if not isinstance(last, _LEAVES):
            yield instead(SKIP_CHECK, statement.body, "the block, unasked")
    elif isinstance(statement, ast.With) and all(item.optional_vars is None for item in statement.items):
        yield instead(DROP_CALL, statement.body, "the block alone")
    elif isinstance(statement, ast.Try) and statement.finalbody:
        rest: list[ast.stmt] = [statement] if statement.handlers else statement.body
        slots = ((statement, "finalbody", []),) if statement.handlers else ((owner, name, replaced(block, at, rest)),)
        last_words = "; ".join(map(heading, statement.finalbody))
        yield Edit(DROP_CALL, statement.finalbody[0].lineno, slots, texts=(f"finally: {last_words}", "nothing"))


def _swapped(owner: ast.AST, name: str, block: list[ast.stmt], at: int) -> Iterator[Edit]:
    first, second = block[at : at + 2]
    simple = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
    if not all(isinstance(each, simple) and _works(each) for each in (first, second)):
        return
    if _stored(first) & _names(second) or _stored(second) & _names(first):
        return
    slots = ((owner, name, replaced(block, at, [second, first], 2)),)
    texts = f"{heading(first)}; {heading(second)}", f"{heading(second)}; {heading(first)}"
    yield Edit(SWAP, first.lineno, slots, texts=texts)


def _raised(owner: ast.AST, name: str, block: list[ast.stmt], at: int) -> Iterator[Edit]:
    statement = block[at]
    assert isinstance(statement, ast.Raise)
    call = statement.exc
    if call is None:
        slots = ((owner, name, replaced(block, at, [placed(ast.Pass(), statement)])),)
        yield Edit(EXCEPTION, statement.lineno, slots, texts=("raise", "pass"))
        return
    if not isinstance(call, ast.Call) or called(call) == "AssertionError":  # an assert in other words
        return
    was = called(call)
    if was in _ERRORS:
        other = "UnknownOutcome" if was == "Conflict" else "Conflict"
        text = f"__import__('laketier.spi.errors', fromlist=['_']).{other}"
    else:
        other = "RuntimeError" if was != "RuntimeError" else "ValueError"
        text = other
    function = placed(ast.parse(text, mode="eval").body, call.func)
    for node in ast.walk(function):
        ast.copy_location(node, call.func)
    yield Edit(
        EXCEPTION, statement.lineno, ((call, "func", function),), texts=(heading(statement)[:90], f"raise {other}")
    )


def _handlers(owner: ast.AST, name: str, block: list[ast.stmt], at: int) -> Iterator[Edit]:
    statement = block[at]
    assert isinstance(statement, ast.Try)
    for number, handler in enumerate(statement.handlers):
        if handler.type is None:
            continue
        caught = ast.unparse(handler.type)
        text = f"except {caught}"
        if caught not in ("Exception", "BaseException"):
            wide = placed(ast.Name("Exception", ast.Load()), handler.type)
            yield Edit(WIDEN, handler.lineno, ((handler, "type", wide),), texts=(text, "except Exception"))
        if isinstance(handler.type, ast.Tuple) and len(handler.type.elts) > 1:
            for which, each in enumerate(handler.type.elts):
                rest = [*handler.type.elts[:which], *handler.type.elts[which + 1 :]]
                slots = ((handler.type, "elts", rest),)
                yield Edit(HANDLER, handler.body[0].lineno, slots, texts=(text, f"without {ast.unparse(each)}"))
        others = [*statement.handlers[:number], *statement.handlers[number + 1 :]]
        if others or statement.finalbody:
            yield Edit(HANDLER, handler.body[0].lineno, ((statement, "handlers", others),), texts=(text, "nothing"))
        else:
            plain = replaced(block, at, [*statement.body, *statement.orelse])
            yield Edit(HANDLER, handler.body[0].lineno, ((owner, name, plain),), texts=(text, "nothing"))


def _cached(function: ast.FunctionDef) -> Iterator[Edit]:
    """The first answer for the same arguments, however the world has changed."""
    looks = any(_LOOK.search(called(node)) and not _makes_a_list(node) for node in ast.walk(function))
    given = function.args
    returns = any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))
    yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))
    if not looks or not returns or yields or given.vararg or given.kwarg:
        return
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    made = ast.parse(
        f"def fresh({', '.join(f'{each}={each}' for each in names)}): pass\n"
        f"seen = globals().setdefault('_seen_by_a_mutant', {{}})\n"
        f"asked = repr(({function.name!r}, {''.join(f'{each}, ' for each in names)}))\n"
        "if asked not in seen:\n"
        f"    seen[asked] = fresh({', '.join(names)})\n"
        "return seen[asked]\n"
    )
    inner = made.body[0]
    assert isinstance(inner, ast.FunctionDef)
    for node in ast.walk(made):
        if hasattr(node, "lineno"):
            ast.copy_location(node, function.body[0])
    inner.body = list(function.body)
    texts = (f"def {function.name}", "the same answer for ever")
    begins = function.body[min(ast.get_docstring(function) is not None, len(function.body) - 1)]
    yield Edit(CACHE, begins.lineno, ((function, "body", made.body),), texts=texts)


def _is_empty(function: ast.FunctionDef) -> bool:
    """A declaration, or what only people read."""
    if function.name in ("__repr__", "__str__"):
        return True
    body = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if any(
        "abstractmethod" in ast.unparse(each) or "overload" in ast.unparse(each) for each in function.decorator_list
    ):
        return True
    return all(isinstance(each, ast.Pass) for each in body)


def _makes_a_list(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "list"


def _is_silent(statement: ast.stmt) -> bool:
    """Also a condition on which something is only said."""
    if isinstance(statement, ast.If) and not statement.orelse:
        return all(map(_is_silent, statement.body))
    return isinstance(statement, ast.Expr) and called(statement.value) in _SILENT


def _works(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) and called(node) not in _SILENT for node in ast.walk(statement))


def _names(statement: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _stored(statement: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
