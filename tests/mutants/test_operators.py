"""Each operator makes its mistake, and takes it back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from laketier_verification.mutants.source import Module
from laketier_verification.mutants.targets import TARGETS


def module(folder: Path, text: str) -> Module:
    file = folder / "broken.py"
    file.write_text(text, encoding="utf-8")
    return Module("broken", file)


def mistakes(folder: Path, *body: str) -> set[tuple[str, str, str]]:
    text = "def f(a, b):\n" + "".join(f"    {line}\n" for line in body)
    return {(each.key.operator, each.key.before, each.key.after) for each in module(folder, text).mutants}


@pytest.mark.parametrize(
    ("line", "operator", "after"),
    [
        ("g(a)", "drop a call", "pass"),
        ("os.fsync(a)", "drop a sync", "pass"),
        ("a.b = 1000", "forget a field", "pass"),
        ("g(a, c=b)", "forget a field", "g(a)"),
        ("return {'a': a, 'b': b}", "forget a field", "return {'b': b}"),
        ("return [a, b]", "forget a field", "return [a]"),
        ("return a < b", "off by one", "return a <= b"),
        ("return a[0]", "off by one", "return a[1]"),
        ("return a + 1", "off by one", "return a"),
        ("return a == b", "negate a condition", "return a != b"),
        ("return a and b", "negate a condition", "return a or b"),
        ("return a and b", "skip a check", "return b"),
        ("return [c for c in a if c]", "skip a check", "return [c for c in a]"),
        ("return max(a, b)", "skip a check", "return a"),
        ("return sorted(a)", "drop a call", "return a"),
        ("return g(a, b)", "swap two", "return g(b, a)"),
        ("return g(True)", "negate a condition", "return g(False)"),
        ("raise Conflict(a)", "another exception", "raise UnknownOutcome"),
        ("raise Fenced(a)", "another exception", "raise Conflict"),
        ("raise OSError(a)", "another exception", "raise RuntimeError"),
    ],
)
def test_a_line(tmp_path: Path, line: str, operator: str, after: str) -> None:
    assert (operator, line, after) in mistakes(tmp_path, line)


def test_guards_and_checks(tmp_path: Path) -> None:
    assert ("drop a guard", "if a:", "pass # not: raise OSError(b)") in {
        (operator, before, " ".join(after.split()))
        for operator, before, after in mistakes(tmp_path, "if a:", "    raise OSError(b)")
    }
    found = mistakes(tmp_path, "if a:", "    g(b)")
    assert ("skip a check", "if a:", "the block, unasked") in found
    assert ("negate a condition", "if a:", "if not a:") in found


def test_excepts(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "try:", "    g(a)", "except (KeyError, OSError):", "    raise", "finally:", "    g(b)")
    assert ("widen an except", "except (KeyError, OSError)", "except Exception") in found
    assert ("drop a handler", "except (KeyError, OSError)", "without OSError") in found
    assert ("drop a handler", "except (KeyError, OSError)", "nothing") in found
    assert ("another exception", "raise", "pass") in found
    assert ("drop a call", "finally: g(b)", "nothing") in found


def test_statements_are_swapped_when_the_second_does_not_need_the_first(tmp_path: Path) -> None:
    assert ("swap two", "g(a); h(b)", "h(b); g(a)") in mistakes(tmp_path, "g(a)", "h(b)")
    assert "swap two" not in {operator for operator, *_ in mistakes(tmp_path, "c = g(a)", "h(c)")}


def test_what_is_for_people_is_left_alone(tmp_path: Path) -> None:
    assert not mistakes(tmp_path, "log.warning('%d', 1)", "failpoint('a')", "assert a == b")
    assert not mistakes(tmp_path, "if a in b:", "    log.error('%s is kept', a)")
    assert not mistakes(tmp_path, "raise OSError(f'{a + 1}', b=1)") - {
        ("another exception", "raise OSError(f'{a + 1}', b=1)", "raise RuntimeError")
    }
    assert not mistakes(tmp_path, "log.error('%s of %s', a, b)", "raise AssertionError(a)")
    assert {after for operator, _, after in mistakes(tmp_path, "g(a, c=b, where=a, why=a, fix=b, noun=a)")} == {
        "pass",
        "g(a, where=a, why=a, fix=b, noun=a)",
    }


def test_what_is_taken_for_granted_of_lengths_is_left_alone(tmp_path: Path) -> None:
    assert not mistakes(tmp_path, "return zip(*a, strict=True)")
    assert {after for _, _, after in mistakes(tmp_path, "return g(*a, strict=True)")} == {
        "return g(*a, strict=False)",
        "return g(*a)",
    }


def test_a_new_list_is_no_look(tmp_path: Path) -> None:
    assert "cache a fresh look" in {operator for operator, *_ in mistakes(tmp_path, "return os.listdir(a)")}
    assert "cache a fresh look" not in {operator for operator, *_ in mistakes(tmp_path, "return list(a)")}


def test_a_cached_look(tmp_path: Path) -> None:
    looks = module(tmp_path, "def head(self):\n    return [name for name in self.read()]\n")
    [cached] = [each for each in looks.mutants if each.key.operator == "cache a fresh look"]
    names: dict[str, object] = {}
    exec(looks.code([cached]), names)  # noqa: S102 - made here

    class Folder:
        def __init__(self) -> None:
            self.names = ["a"]

        def read(self) -> list[str]:
            return self.names

    folder = Folder()
    head = names["head"]
    assert callable(head)
    assert head(folder) == ["a"]
    folder.names = ["b"]
    assert head(folder) == ["a"]
    assert head(Folder()) == ["a"]


def test_each_mutant_differs_compiles_and_is_taken_back() -> None:
    source = TARGETS["feather"].modules()["laketier.kit.durable"]
    before, plain = ast.dump(source.tree), source.code(())
    for mutant in source.mutants:
        assert source.code([mutant]).co_consts != plain.co_consts, mutant.key
        assert ast.dump(source.tree) == before, mutant.key
    assert len({mutant.key for mutant in source.mutants}) == len(source.mutants)


def test_a_method_keeps_its_class(tmp_path: Path) -> None:
    source = module(tmp_path, "class C(dict):\n    def f(self):\n        super().clear()\n        return 1\n")
    [dropped] = [each for each in source.mutants if each.key.operator == "drop a call"]
    names: dict[str, type] = {}
    exec(source.code([]), names)  # noqa: S102 - made here
    made = names["C"]()
    made["a"] = 1
    for function in (each for each in _codes(source.code([dropped])) if each.co_qualname == "C.f"):
        names["C"].f.__code__ = function
    assert (made.f(), made) == (1, {"a": 1})


def _codes(code):  # type: ignore[no-untyped-def]
    return [constant for each in code.co_consts if hasattr(each, "co_consts") for constant in [each, *_codes(each)]]


def test_a_key_stays_when_lines_move(tmp_path: Path) -> None:
    text = "def f(a):\n    g(a)\n    g(a)\n"
    keys = [each.key for each in module(tmp_path, text).mutants]
    moved = module(tmp_path, "import os\n\n\n" + text)
    assert [each.key for each in moved.mutants] == keys
    assert {key.nth for key in keys if key.operator == "drop a call"} == {0, 1}


def test_functions_that_are_left_alone(tmp_path: Path) -> None:
    """Another target has them, and each is there: a name that has gone would bring its mutants back unseen."""
    source = module(tmp_path, "def one(a):\n    return a + 1\n\n\ndef two(a):\n    return a + 1\n")
    without = Module(source.name, source.file, frozenset({"one"}))
    assert {each.key.function for each in source.mutants} == {"one", "two"}
    assert {each.key.function for each in without.mutants} == {"two"}
    whole = {name: found for target in TARGETS.values() for name, found in target.modules().items()}
    for target in TARGETS.values():
        for left in target.but:
            name, _, function = left.partition(":")
            assert not function or Module(name, whole[name].file).digest(function), left
