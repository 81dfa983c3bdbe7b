"""One run of the suite: what a test that needs more than the harness has says, and the proof of the source."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import laketier_conformance
from laketier.registry import load_format
from laketier.spi import FeatureNotSupported, PluginError
from laketier_conformance.expect import NotShown
from laketier_conformance.failures import attach, ended_in, lines_of, sentence_of
from laketier_conformance.manifest import chosen_tests, expected_tests, name_of
from laketier_conformance.own_code import really_called
from laketier_conformance.words import plainly
from laketier_source_conformance.proof import SourceProof, again
from laketier_source_conformance.rules import rule_of
from laketier_source_conformance.system import CannotBe

HERE = Path(__file__).parent
MANIFEST = HERE / "MANIFEST"
NAME, NOT_SHOWN, REFUSED = "laketier_source_test", "laketier_source_not_shown", "laketier_source_refused"


class SourceSuite:
    """A pytest plugin, registered only when a source is named. Results are gathered from reports, so they are whole
    under xdist too."""

    def __init__(self, config: pytest.Config) -> None:
        self._reports = not hasattr(config, "workerinput")
        self._expected = expected_tests(MANIFEST)
        self._chosen = chosen_tests(config.getoption("log_test"), self._expected, "--log-test")
        self._options = _options(config)
        _is_installed(config.getoption("log_lake"))
        self.source = str(config.getoption("log_source"))
        self.proof = SourceProof(
            self.source, config.getoption("log_harness"), self._expected, self._chosen, self._options
        )
        report, page, underway = (config.getoption(f"log_{name}") for name in ("report", "page", "underway"))
        self._report, self._page = (None if each is None else Path(str(each)).absolute() for each in (report, page))
        if self._report is not None and self._report == self._page:
            raise pytest.UsageError(f"--log-report and --log-page: {report} can't be both, name two files")
        self._told_underway = None if underway is None else Path(underway)
        self._underway: dict[str, None] = {}

    # -- what is run ------------------------------------------------------------------------------------------------

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Of tests that are named one by one, no other file is looked at."""
        is_test = collection_path.is_relative_to(HERE) and collection_path.name.startswith("test_")
        if not self._chosen or not is_test:
            return None
        return collection_path.name not in {test.partition("::")[0] for test in self._chosen} or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            name = name_of(item.path, item.nodeid, HERE)
            if name is not None:
                item.user_properties.append((NAME, name))
                # Client libraries may warn as they like, whatever the author's configuration makes of it.
                item.add_marker(pytest.mark.filterwarnings("default"))
            wanted = name is None or not self._chosen or name in self._chosen
            (chosen if wanted else left_out).append(item)
        if left_out:
            items[:] = chosen
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """A test that needs what the harness has not says so. One that needs what the contract leaves to the source
        ends in the source's refusal of it."""
        if NAME not in dict(pyfuncitem.user_properties):
            return (yield)
        may_refuse = {str(what) for mark in pyfuncitem.iter_markers("may_refuse") for what in mark.args}
        try:
            with really_called(pyfuncitem):
                return (yield)
        except (NotShown, CannotBe) as reason:
            _is_the_suites(reason)
            told = NOT_SHOWN if isinstance(reason, NotShown) else REFUSED
            pyfuncitem.user_properties.append((told, str(reason)))
        except FeatureNotSupported as refusal:
            if refusal.feature not in may_refuse:
                raise
            pyfuncitem.user_properties.append((REFUSED, str(refusal)))
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A failure says which rule was broken, what was found, and how to run it again."""
        report = yield
        told = dict(item.user_properties)
        if not report.skipped and call.excinfo is not None and NAME in told:
            says = plainly(sentence_of(call.excinfo))
            attach(says, self._explained(str(told[NAME]), says), report, item)
        if NAME in told:
            report.user_properties = plainly(list(report.user_properties))
        return report

    def _explained(self, test: str, says: str) -> str:
        return lines_of(rule_of(test), says, again(self.source, test, self._options))

    # -- results ----------------------------------------------------------------------------------------------------

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._underway[nodeid] = None
        name = None if self._told_underway is None else self._known(nodeid)
        if name is not None and self._told_underway is not None:
            self._told_underway.write_text(f"{name}\n{again(self.source, name, self._options)}", encoding="utf-8")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._underway.pop(nodeid, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        name = str(told[NAME]) if NAME in told else self._known(report.nodeid) if report.failed else None
        if name is None:
            return
        if NAME not in told:  # xdist reports by its node id alone the test that ended its process
            says = ended_in(name, plainly(str(report.longrepr)))
            attach(says, self._explained(name, says), report)
        self.proof.add(name, report, told.get(REFUSED), told.get(NOT_SHOWN))

    def _known(self, nodeid: str) -> str | None:
        known = (test for test in self._expected if nodeid == test or nodeid.endswith(f"/{test}"))
        return next(known, None)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self._reports or session.config.getoption("collectonly"):
            return
        underway = [name for nodeid in self._underway if (name := self._known(nodeid)) is not None]
        self.proof.close(int(exitstatus), underway)
        if self._report is not None:
            self.proof.write(self._report)
        if self._page is not None:
            self.proof.write_page(self._page)
        if exitstatus == 0 and not self.proof.as_asked:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._told_underway is not None:
            self._told_underway.unlink(missing_ok=True)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        given = terminalreporter.config.option
        self.proof.tell(terminalreporter, given.tbstyle in ("no", "line") or given.showcapture != "all")


def _is_the_suites(reason: BaseException) -> None:
    """Raised by the suite itself: a source has no say in what is asked of it."""
    frames = list(traceback.walk_tb(reason.__traceback__))
    raised = Path(frames[-1][0].f_code.co_filename)
    if not any(raised.is_relative_to(each) for each in (HERE, Path(laketier_conformance.__file__).parent)):
        raise AssertionError(
            f"the source raised {type(reason).__name__}({reason}), which is the suite's own: what a system can't have, "
            "the harness says in `cannot`"
        ) from reason


def _is_installed(lake_format: str | None) -> None:
    try:
        if lake_format is not None:
            load_format(lake_format)
    except PluginError as error:
        raise pytest.UsageError(f"--log-lake={lake_format}: {error}") from error


def _options(config: pytest.Config) -> tuple[str, ...]:
    """What a test was run with, and has to be run with again, where it is not as usual."""
    usual = {"log_harness": None, "log_lake": None, "log_rows": 1_000_000, "log_seed": 1}
    given = {name: config.getoption(name) for name in usual}
    return tuple(f"--{name.replace('_', '-')}={given[name]}" for name in sorted(given) if given[name] != usual[name])
