# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pytest plugin for `make test` and `make stress`: a line for each failure as it happens and for
each suite as it ends, and the command that repeats the failures.

It reads the reports that pytest-xdist sends to the controlling process, so it works with any number
of workers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

PREFIX = "PART "  # tests/tools/parts shows the lines that start with this
RERUN = "To repeat just what failed:"


def suite_of(nodeid: str) -> str:
    """Return the name of a test's suite: its directory under tests/, as `make` calls it."""
    name = nodeid.split("/")[1]
    return "guides" if name == "docs" else name


class Parts:
    """Counts the tests of each suite that have not ended yet."""

    def __init__(self, reporter) -> None:
        self._reporter = reporter
        self._pending: dict[str, set[str]] = defaultdict(set)
        self._ended: dict[str, Counter] = defaultdict(Counter)
        self._seconds: Counter = Counter()
        self._failed: list[str] = []

    def expect(self, nodeids: Iterable[str]) -> None:
        """Note tests that will run."""
        for nodeid in nodeids:
            self._pending[suite_of(nodeid)].add(nodeid)

    def pytest_collection_finish(self, session) -> None:
        """Without xdist: the tests are collected in this process."""
        self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids) -> None:
        """With xdist: each worker collects all tests."""
        self.expect(ids)

    def pytest_runtest_logreport(self, report) -> None:
        """Count a phase of a test; the last one ends it, and the last test ends the suite."""
        suite = suite_of(report.nodeid)
        self._seconds[suite] += report.duration
        if report.failed and report.nodeid not in self._failed:
            self._failed.append(report.nodeid)
            self._ended[suite]["failed"] += 1
            self._say(f"FAILED {report.nodeid}: {_reason(report)}")
        if report.skipped:
            self._ended[suite]["skipped"] += 1
        if report.outcome == "rerun":
            self._ended[suite]["run again"] += 1
        if report.when != "teardown" or report.nodeid not in self._pending[suite]:
            return
        self._ended[suite]["run"] += 1
        self._pending[suite].discard(report.nodeid)
        if not self._pending[suite]:
            self._print(suite)

    def _print(self, suite: str) -> None:
        ended = self._ended[suite]
        passed = ended["run"] - ended["failed"] - ended["skipped"]
        others = "".join(
            f", {ended[word]} {word}" for word in ("failed", "skipped", "run again") if ended[word]
        )
        self._say(
            f"{suite:12} {passed:5,} passed{others}, {self._seconds[suite]:.0f} s in its tests"
        )

    def _say(self, text: str) -> None:
        self._reporter.write(f"\n{PREFIX}{text}\n", flush=True)

    def pytest_terminal_summary(self, terminalreporter) -> None:
        """Print the command for what failed."""
        if self._failed:
            tests = " ".join(f"'{nodeid}'" for nodeid in self._failed)
            terminalreporter.write_line(
                f"{RERUN}\n.venv/bin/python -m pytest -p no:cacheprovider {tests}"
            )


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
