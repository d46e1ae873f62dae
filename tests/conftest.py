"""Rules for the whole suite: a skipped test fails the run unless its reason is listed here."""

import pytest

ALLOWED_SKIPS = ("needs an accelerator",)

_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2])
        if not any(allowed in reason for allowed in ALLOWED_SKIPS):
            _skipped.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _skipped and exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _skipped:
        terminalreporter.write_line(f"skipped for a reason that is not listed: {line}", red=True)
