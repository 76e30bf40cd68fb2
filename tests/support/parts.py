"""A pytest plugin for `make test` and `make stress`: a line for each failure as it happens; at the
end one for each suite, and the command that repeats the failures.

It reads the reports that pytest-xdist sends to the controlling process, so it works with any number
of workers.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

PREFIX = "PART "  # tests/tools/parts shows the lines that start with this
RERUN = "To repeat just what failed:"


class Parts:
    """Prints what became of the tests."""

    def __init__(self, reporter) -> None:
        self._reporter = reporter
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report) -> None:
        """Print a failure."""
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)
            self._say(f"FAILED {report.nodeid}: {_reason(report)}")

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print a line for each suite, a directory under tests/, and the command for what failed."""
        suites: dict[str, Counter] = defaultdict(Counter)
        seconds: Counter = Counter()
        for word, reports in terminalreporter.stats.items():
            for report in reports if word not in ("warnings", "deselected") else ():
                suite = "/".join(report.nodeid.split("/")[1:2])
                seconds[suite] += getattr(report, "duration", 0)  # none if it was not collected
                suites[suite][word] += 1
        for suite, counts in suites.items():
            told = ", ".join(f"{number:,} {word}" for word, number in counts.items() if word)
            self._say(f"{suite:12} {told}, {seconds[suite]:.0f} s in its tests")
        if self._failed:
            tests = " ".join(f"'{nodeid}'" for nodeid in self._failed)
            terminalreporter.write_line(
                f"{RERUN}\n.venv/bin/python -m pytest -p no:cacheprovider {tests}"
            )

    def _say(self, text: str) -> None:
        self._reporter.write(f"\n{PREFIX}{text}\n", flush=True)


def _reason(report) -> str:
    """Return the first line of why a test failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).partition("\n")[0]


def pytest_addoption(parser) -> None:
    """Add the option that `make` gives."""
    parser.addoption(
        "--parts",
        action="store_true",
        help="print a line for each failure, and each suite as it ends",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config) -> None:
    """Count in the controlling process only."""
    if config.getoption("--parts") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Parts(config.pluginmanager.get_plugin("terminalreporter")))
