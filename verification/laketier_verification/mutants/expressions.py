"""The mistakes: operators on expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from laketier_verification.mutants.edits import Edit, called, placed

OFF_BY_ONE, NEGATE, SKIP, SWAP, FORGET, DROP = (
    "off by one",
    "negate a condition",
    "skip a check",
    "swap two",
    "forget a field",
    "drop a call",
)
_BOUNDS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITES = {ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn}
_OPPOSITES |= {value: key for key, value in _OPPOSITES.items()}
_CONVERSIONS = {
    "str",
    "tuple",
    "list",
    "int",
    "bool",
    "len",
    "iter",
    "any",
    "all",
    "Path",
    "repr",
    "isinstance",
    "type",
    "range",
}
_BLOCKS = {"body", "orelse", "finalbody", "handlers", "cases"}
_NOT_CODE = {"annotation", "returns", "decorator_list", "args", "ctx", "op", "ops"}
_FOR_PEOPLE = {"where", "why", "fix", "noun"}
"""Arguments that only become part of a message."""
_ASSERTED = ("zip", "strict")
"""A call and its argument that say what the code takes for granted: an assert in other words."""
_LARGEST = 100
"""One more or less of a size is no mistake."""


def of_expressions(statement: ast.stmt) -> Iterator[Edit]:
    """All edits of a statement's own expressions. Those of its blocks are not among them."""
    for field, value in ast.iter_fields(statement):
        if field in _BLOCKS or field in _NOT_CODE or field in ("targets", "target"):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.withitem):
                yield from _Within(statement).slot(child, "context_expr", None, child.context_expr)
            elif isinstance(child, ast.expr):
                yield from _Within(statement).slot(statement, field, at if isinstance(value, list) else None, child)


class _Within:
    """Edits of what one statement holds."""

    def __init__(self, statement: ast.stmt) -> None:
        self._statement = statement

    def slot(self, parent: ast.AST, field: str, at: int | None, node: ast.expr) -> Iterator[Edit]:
        """Of one expression and of those in it."""

        def by(operator: str, new: ast.expr) -> Edit:
            value: object = placed(new, node)
            if at is not None:
                value = [*getattr(parent, field)]
                value[at] = placed(new, node)
            return Edit(operator, node.lineno, ((parent, field, value),), (self._statement,))

        is_test = field == "test" or field == "ifs"
        for operator, new in _instead_of(node, is_test=is_test):
            yield by(operator, new)
        yield from self._children(node)

    def _children(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.JoinedStr):
            return
        for field, value in ast.iter_fields(node):
            is_call = isinstance(node, ast.Call)
            if field in _NOT_CODE and not (field == "args" and is_call):
                continue
            for at, child in enumerate(value if isinstance(value, list) else [value]):
                index = at if isinstance(value, list) else None
                if isinstance(child, ast.expr):
                    yield from self.slot(node, field, index, child)
                elif isinstance(child, ast.keyword) and (called(node), child.arg) != _ASSERTED:
                    yield from self.slot(child, "value", None, child.value)
                elif isinstance(child, ast.comprehension):
                    yield from self._comprehension(child)
        yield from self._lists(node)

    def _comprehension(self, part: ast.comprehension) -> Iterator[Edit]:
        yield from self.slot(part, "iter", None, part.iter)
        for at, condition in enumerate(part.ifs):
            rest = [*part.ifs[:at], *part.ifs[at + 1 :]]
            yield Edit(SKIP, condition.lineno, ((part, "ifs", rest),), (self._statement,))
            yield from self.slot(part, "ifs", at, condition)

    def _lists(self, node: ast.AST) -> Iterator[Edit]:
        """Something left out of something that lists."""

        def without(line: int, *slots: tuple[ast.AST, str, object]) -> Edit:
            return Edit(FORGET, line, tuple(slots), (self._statement,))

        if isinstance(node, ast.Call):
            for at, keyword in enumerate(node.keywords):
                if keyword.arg not in (None, *_FOR_PEOPLE) and (called(node), keyword.arg) != _ASSERTED:
                    rest = [*node.keywords[:at], *node.keywords[at + 1 :]]
                    yield without(keyword.value.lineno, (node, "keywords", rest))
        elif isinstance(node, ast.Dict):
            for at, value in enumerate(node.values):
                keys, values = ([*each[:at], *each[at + 1 :]] for each in (node.keys, node.values))
                yield without(value.lineno, (node, "keys", keys), (node, "values", values))
        elif isinstance(node, (ast.List, ast.Set)) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            for at, value in enumerate(node.elts if len(node.elts) > 1 else ()):
                yield without(value.lineno, (node, "elts", [*node.elts[:at], *node.elts[at + 1 :]]))


def _instead_of(node: ast.expr, *, is_test: bool) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(left=left, ops=[one], comparators=[right]) if type(one) in _BOUNDS:
            yield OFF_BY_ONE, ast.Compare(left, [_BOUNDS[type(one)]()], [right])
        case ast.Compare(left=left, ops=[one], comparators=[right]) if type(one) in _OPPOSITES:
            yield NEGATE, ast.Compare(left, [_OPPOSITES[type(one)]()], [right])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield NEGATE, operand
        case ast.BoolOp(op=op, values=values):
            yield NEGATE, ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for at in range(len(values)):
                rest = [*values[:at], *values[at + 1 :]]
                yield SKIP, rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.Constant(value=bool() as flag):
            yield NEGATE, ast.Constant(not flag)
        case ast.Constant(value=int() as number) if abs(number) <= _LARGEST:
            yield OFF_BY_ONE, ast.Constant(number + 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            yield OFF_BY_ONE, left
        case ast.Call():
            yield from _instead_of_a_call(node)
        case ast.Name() | ast.Attribute() if is_test:
            yield NEGATE, ast.UnaryOp(ast.Not(), node)
    if is_test and isinstance(node, (ast.Call, ast.BinOp, ast.NamedExpr)):
        yield NEGATE, ast.UnaryOp(ast.Not(), node)


def _instead_of_a_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name, given = called(node), node.args
    if any(isinstance(each, ast.Starred) for each in given):
        return
    if name in ("min", "max") and len(given) == 2:
        yield from ((SKIP, each) for each in given)
    elif len(given) == 1 and not node.keywords and isinstance(node.func, ast.Name) and name not in _CONVERSIONS:
        yield DROP, given[0]
    if len(given) >= 2 and name not in ("isinstance", "min", "max"):
        first, second, *rest = given
        if not (isinstance(first, ast.Constant) and isinstance(second, ast.Constant)):
            yield SWAP, ast.Call(node.func, [second, first, *rest], node.keywords)
