"""One run of the suite: strictness, the rule about refusals, and a proof per format."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Collection, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from laketier.spi import Feature, FeatureNotSupported, LakeStoragePlugin, UnsupportedType, support_of
from laketier_conformance import answer_types
from laketier_conformance.expect import NotShown
from laketier_conformance.failures import again, attach, ended_in, explained, no_room, sentence_of
from laketier_conformance.manifest import chosen_tests, expected_tests, formats_named, name_of
from laketier_conformance.own_code import is_ours, really_called
from laketier_conformance.own_ids import named_by_pytest_alone
from laketier_conformance.proof import Proof
from laketier_conformance.rules import rule_of
from laketier_conformance.verdict import FAIL, FEATURES, UNPROVEN
from laketier_conformance.words import plainly

FORMAT, NAME, REFUSED = "laketier_format", "laketier_test", "laketier_refused"
_FORGING = ("confinement", "damage")
"""Rules whose tests write what no plugin writes: its values may be of any type, wherever they do no harm."""
PARAMETER = "format_name"
"""The fixture that says which format a test is about, and so its parameter when a run has several."""
_OF_TYPES = {Feature.NESTED_TYPES.value, Feature.VECTORS.value}
"""A format without one of these refuses the feature, or the type."""


class Suite:
    """A pytest plugin, registered only when a format is named. Results are gathered from reports, so they are whole
    under xdist too, where tests run in other processes."""

    def __init__(
        self,
        config: pytest.Config,
        names: Collection[str],
        lanes: tuple[str, ...],
        files: Mapping[str, Path],
        pages: Mapping[str, Path],
        options: tuple[str, ...] = (),
    ) -> None:
        self._reports = not hasattr(config, "workerinput")
        self.lanes = lanes
        self._expected = expected_tests()
        self._chosen = chosen_tests(config.getoption("lake_test"), self._expected)
        self._named = formats_named(config.args, names)
        self._options = options
        self._files, self._pages = files, pages
        self._unwritten: list[str] = []
        self._underway: dict[str, None] = {}
        """The tests that began and have not ended, by their node ids."""
        underway = config.getoption("lake_underway")
        self._told_underway = None if underway is None else Path(underway)
        if self._reports:
            for option, given in (("report", files), ("page", pages)):
                for file in given.values():
                    _make_way(file, f"--lake-{option}={file}")
        self.proofs = {
            name: Proof(name, lanes, self._expected, options, config.getoption("lake_schedules"), self._chosen)
            for name in names
        }
        for proof in self.proofs.values():
            answer_types.watch(proof.plugin)

    def plugin_of(self, name: str) -> LakeStoragePlugin:
        """The plugin of one of the formats under test."""
        return self.proofs[name].plugin

    # -- what is run ------------------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each test for each format, when there are several. They share what costs most: one Spark session."""
        if len(self.proofs) > 1 and PARAMETER in metafunc.fixturenames and is_ours(metafunc.definition.path):
            # Thousands that nobody asked for take a minute where many formats each meet one test.
            asked = self._named.get(f"{metafunc.definition.path.name}::{metafunc.definition.name}", [*self.proofs][:1])
            metafunc.parametrize(PARAMETER, asked if self._named else list(self.proofs), scope="session")

    @pytest.hookimpl(wrapper=True, specname="pytest_generate_tests")
    def pytest_generate_names(self, metafunc: pytest.Metafunc) -> Generator[None, None, None]:
        if not is_ours(metafunc.definition.path):
            return (yield)
        with named_by_pytest_alone(metafunc.config):
            return (yield)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Of tests that are named one by one, no other file is looked at."""
        if not self._chosen or not is_ours(collection_path) or not collection_path.name.startswith("test_"):
            return None
        return collection_path.name not in {test.partition("::")[0] for test in self._chosen} or None

    @pytest.hookimpl(tryfirst=True, specname="pytest_collection_modifyitems")
    def pytest_collection_names(self, items: list[pytest.Item]) -> None:
        for item in items:
            name = name_of(item.path, item.nodeid)
            if name is None:
                continue
            whose = self.parted(name)
            if whose is None:
                raise pytest.UsageError(f"{name} does not say which format it is about: use the fixture {PARAMETER}")
            # Travel with each report, also out of the processes of xdist.
            item.user_properties += zip((FORMAT, NAME), whose, strict=True)
            item.user_properties.append((FEATURES, _features(item)))
            # Engines may warn as they like, whatever the author's own configuration makes of it; laketier may not.
            item.add_marker(pytest.mark.filterwarnings("default", "error:::laketier"))
        # The one session takes longest, so it begins first.
        items.sort(key=lambda item: item.get_closest_marker("lane") is None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """With ``--dist loadfile``: the lanes on Spark of all formats in one process, each other file and format in
        any. So the session is started once, and a file's processes in waiting are of use to more than one test."""
        if config.getoption("dist") != "loadfile":
            return None
        from laketier_conformance.spreading import by_format_and_file

        return by_format_and_file(config, log, self.parted, alone=len(self.proofs) == 1)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            lane = item.get_closest_marker("lane")
            told = dict(item.user_properties)
            wanted = not self._chosen or NAME not in told or told[NAME] in self._chosen
            (chosen if wanted and (lane is None or lane.args[0] in self.lanes) else left_out).append(item)
        if left_out:
            items[:] = chosen
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """A test that needs what the format does not have must end in the refusal of just that. One that can't show
        here what the format declares has nothing to say of it, and the report tells why."""
        if NAME not in dict(pyfuncitem.user_properties):
            return (yield)
        with really_called(pyfuncitem):
            result = yield from self._refused_or_passed(pyfuncitem)
        wrong = _wrong_answer(pyfuncitem)
        if wrong is not None:
            pytest.fail(wrong)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        answer_types.WRONG.clear()

    def _refused_or_passed(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        needed: set[Feature] = set()
        for marker in pyfuncitem.iter_markers("needs"):
            needed |= set(marker.args)
        if not needed:
            return (yield)
        features = self.plugin_of(str(dict(pyfuncitem.user_properties)[FORMAT])).features
        missing = {feature.value for feature in needed if not support_of(features, feature).full}
        lacking = ", ".join(sorted(missing))
        try:
            result = yield
        except NotShown as reason:
            if not _says_the_suite(reason):
                pytest.fail(
                    "the plugin raised the suite's own NotShown, by which a test says that nothing shows a feature "
                    f"here: raise an error of laketier.spi. It said {reason}"
                )
            pyfuncitem.user_properties.append((UNPROVEN, str(reason)))
            return True
        except FeatureNotSupported as refusal:
            if not missing:
                raise
            if refusal.feature not in missing:
                pytest.fail(f"{lacking} is declared unsupported, and {refusal.feature} was refused instead")
        except UnsupportedType:
            if not missing & _OF_TYPES:
                raise
        else:
            if not missing:
                return result
            if any(name == UNPROVEN for name, _ in pyfuncitem.user_properties):
                return True  # The test said that it could not ask for it, and why.
            pytest.fail(f"{lacking} is declared unsupported, and was not refused")
        pyfuncitem.user_properties.append((REFUSED, lacking))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A failure says which rule was broken, what was found, and how to run it again."""
        report = yield
        told = dict(item.user_properties)
        if not report.skipped and call.excinfo is not None and NAME in told:
            says = plainly(_wrong_answer(item)) or sentence_of(call.excinfo)
            says += plainly(no_room(Path(item.config.option.basetemp or tempfile.gettempdir())))
            attach(says, explained(str(told[FORMAT]), str(told[NAME]), says, self._options), report, item)
        if NAME in told:
            # They travel out of the processes of xdist, which can't take each text.
            report.user_properties = plainly(list(report.user_properties))
        return report

    # -- results ----------------------------------------------------------------------------------------------------

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._underway[nodeid] = None
        whose = None if self._told_underway is None else self._known(nodeid)
        if whose is not None and self._told_underway is not None:
            self._told_underway.write_text("\n".join((whose[1], again(*whose, self._options))), encoding="utf-8")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._underway.pop(nodeid, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        whose = (str(told[FORMAT]), str(told[NAME])) if NAME in told else self._failure_of(report)
        if whose is not None:
            if NAME not in told:
                says = ended_in(whose[1], plainly(str(report.longrepr)))
                attach(says, explained(*whose, says, self._options), report)
            refused = told.get(REFUSED)
            self.proofs[whose[0]].add(whose[1], report, None if refused is None else str(refused))

    def _failure_of(self, report: pytest.TestReport) -> tuple[str, str] | None:
        """The test that ended its process, which xdist reports by its node id alone. Only a failure is believed."""
        return self._known(report.nodeid) if report.failed else None

    def _known(self, nodeid: str) -> tuple[str, str] | None:
        """A format and a test of the suite, by a node id alone."""
        whose = self.parted(nodeid)
        if whose is None:
            return None
        known = (test for test in self._expected if whose[1] == test or whose[1].endswith(f"/{test}"))
        return next(((whose[0], test) for test in known), None)

    def parted(self, test: str) -> tuple[str, str] | None:
        """A format, and the test without it: of several formats each test has one as its first parameter."""
        if len(self.proofs) == 1:
            return next(iter(self.proofs)), test
        function, _, parameters = test.partition("[")
        for name in sorted(self.proofs, key=len, reverse=True):
            if parameters == f"{name}]":
                return name, function
            if parameters.startswith(f"{name}-"):
                return name, f"{function}[{parameters.removeprefix(f'{name}-')}"
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self._reports or session.config.getoption("collectonly"):
            return
        for name, proof in self.proofs.items():
            whose = [self._known(nodeid) for nodeid in self._underway]
            verdict = proof.close(int(exitstatus), [each[1] for each in whose if each is not None and each[0] == name])
            try:
                if name in self._files:
                    proof.write(self._files[name])
                if name in self._pages:
                    proof.write_page(self._pages[name])
            except OSError as error:
                self._unwritten.append(f"{name}: the report could not be written: {error}")
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            if verdict.name == FAIL or (exitstatus == 0 and not proof.as_asked):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._told_underway is not None:
            # The run came to its end, whether or not a report could be written.
            self._told_underway.unlink(missing_ok=True)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        given = terminalreporter.config.option
        hidden = given.tbstyle in ("no", "line") or given.showcapture != "all"
        for proof in self.proofs.values():
            proof.tell(terminalreporter, hidden)
        for line in self._unwritten:
            terminalreporter.line(plainly(line), red=True)


def _wrong_answer(item: pytest.Item) -> str | None:
    """The first answer of another type than its contract says; of tables that nobody forged."""
    rule = rule_of(str(dict(item.user_properties)[NAME]))
    return None if not answer_types.WRONG or (rule is not None and rule.id in _FORGING) else answer_types.WRONG[0]


def _says_the_suite(error: BaseException) -> bool:
    """Whether the error was raised by code of the suite."""
    raised = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(raised) and is_ours(Path(raised[-1].f_code.co_filename))


def _features(item: pytest.Item) -> list[str]:
    """Those that a test needs, or tells about in another way."""
    markers = [marker for name in ("needs", "shows") for marker in item.iter_markers(name)]
    return sorted({feature.value for marker in markers for feature in marker.args})


def _make_way(file: Path, option: str) -> None:
    """Let a crash leave no verdict of an earlier run behind, and see at once whether there will be a place."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.touch(exist_ok=False)
        file.unlink()
    except OSError as error:
        raise pytest.UsageError(f"{option}: no file can be written there: {error}") from error
