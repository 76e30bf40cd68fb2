# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the code of plugins/ in one place at a time, and count the changes that no test notices.

    python tests/tools/mutation.py [--sample NUMBER] [--seed NUMBER] [--again] [--keep] [TEST...]

A fixed seed draws a sample of the mutants; each line of code is as likely as any other. The tests
of TEST (the suites of SUITES) run once, to find the lines that each of them reaches. Tests that
start Ansible or other processes do not take part. Each mutant is written into a copy of the tree.
A fork of this process, which has imported all libraries, runs the tests that reach the line, the
fastest first, until one fails. The survivors are printed with their change, then the score by
folder. A mutant on a line that no test reaches is a survivor.

`--again` tries only the survivors of the last run, after a change of the tests or of the code. A
survivor whose code is gone is no longer counted. `--keep` uses the copy of the last run, and what
it found about the tests.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import accumulate
from pathlib import Path

import pytest
from coverage import CoverageData
from hypothesis import settings
from mutants import Mutant, every, sample

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build/mutation"
TREE = BUILD / "tree"
CONTEXTS, FOUND, OUTPUT = BUILD / "contexts", BUILD / "found.json", BUILD / "output"
VERDICTS = BUILD / "verdicts.json"
SUITES = ("unit/plugins", "contract", "faults", "security", "tokens", "tls", "ledger", "story")
OTHER_PROCESSES = {"ansible", "collections", "fork"}  # fixtures; what runs there is not seen
PATIENCE = 1800  # seconds for all tests
LONGEST = 60  # seconds for a part of the tests, in addition to three times what they took
QUICK, SLOW = 2, 40  # seconds of the tests that run first, and of those that then run
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a ledger waits for the disk often


class Choice:
    """A pytest plugin: the tests of this process, the fastest first, with the same examples each
    time. It notes how long each test takes, and which of them fail.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds
        self.taken: Counter[str] = Counter()
        self.failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        profile = settings.get_profile("test")
        settings.register_profile("mutation", profile, database=None, derandomize=True)
        settings.load_profile("mutation")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [item for item in items if not OTHER_PROCESSES & {*item.fixturenames}]
        items[:] = sorted(kept, key=lambda item: self._seconds.get(_function(item.nodeid), 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = _function(report.nodeid)
        self.taken[test] += report.duration
        if report.failed:
            self.failed.add(test)


def _function(test: str) -> str:
    """Return the name of a test without its parameters, which may contain anything."""
    return test.partition("[")[0]


class Reached:
    """Which tests reach which lines, and how long each takes."""

    def __init__(self) -> None:
        self._data = CoverageData(str(CONTEXTS))
        self._data.read()
        self.seconds: dict[str, float] = json.loads(FOUND.read_text("utf-8"))["seconds"]

    def tests(self, mutant: Mutant) -> list[set[str]]:
        """Return the tests that reach a line, or another line of its statement.

        A line that runs when the file is imported is reached by all tests: those of the file, and
        the others.
        """
        lines = self._data.contexts_by_lineno(str(TREE / mutant.file))
        contexts = {one for line in _statement(mutant) for one in lines.get(line, [])}
        contexts = {*lines.get(mutant.line, contexts)}
        if "" not in contexts:
            return [self._named(contexts)]
        of_file = self._named({one for some in lines.values() for one in some})
        return [of_file, self.seconds.keys() - of_file]

    def _named(self, contexts: set[str]) -> set[str]:
        return self.seconds.keys() & {_function(one.rpartition("|")[0]) for one in contexts}

    def parts(self, mutant: Mutant) -> Iterator[tuple[list[str], float]]:
        """Yield the quick tests that reach a line, then others, and how long they take."""
        for group in self.tests(mutant):
            tests = sorted(group, key=lambda name: self.seconds[name])
            for most in (QUICK, SLOW):
                ends = list(accumulate(self.seconds[name] for name in tests))
                count = max(1, bisect_right(ends, most))
                if tests:
                    yield tests[:count], ends[min(count, len(tests)) - 1]
                tests = tests[count:]


def _statement(mutant: Mutant) -> range:
    """Return the lines of the innermost statement, without the statements that it contains."""
    found = range(0)
    for node in ast.walk(ast.parse((TREE / mutant.file).read_bytes())):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            lines = range(node.lineno, body[0].lineno if body else node.end_lineno + 1)
            if mutant.line in lines:
                found = lines
    return found


def in_fork(work: Callable[[], int], seconds: float) -> int:
    """Run a function in a fork of this process, and return its status: not 0 after so long.

    Its files are in a directory of its own; its output is in OUTPUT.
    """
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        os.chmod(directory, 0o755)  # as root, PostgreSQL runs as another user
        child = os.fork()
        if not child:
            status = 1
            try:
                os.setsid()
                with OUTPUT.open("wb") as output:
                    os.dup2(output.fileno(), 1)
                    os.dup2(output.fileno(), 2)
                os.environ["TMPDIR"] = tempfile.tempdir = directory
                os.chdir(TREE)
                status = work()
            finally:
                os._exit(status)
        with _killed_after(child, seconds):
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def _killed_after(child: int, seconds: float) -> Iterator[None]:
    """Kill the process and those that it has started, after so long or when it has ended."""

    def kill(*_signal: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)

    signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        kill()


def run_tests(arguments: list[str], choice: Choice) -> int:
    """Run pytest in this process, without rewriting of assertions: hypothesis is imported."""
    always = ["-p", "no:cacheprovider", "--assert=plain", "-q"]
    return int(pytest.main([*always, *arguments], plugins=[choice]))


def find_reached(tests: list[str]) -> None:
    """Run the tests once; note which lines each reaches, how long it takes, what it imports."""
    (BUILD / "coverage.ini").write_text(
        f"[run]\nsource = {TREE}/plugins\ndata_file = {CONTEXTS}\n", encoding="utf-8"
    )
    coverage = ["--cov", f"--cov-config={BUILD / 'coverage.ini'}", "--cov-context=test"]

    def work() -> int:
        choice = Choice({})
        run_tests([*coverage, "--cov-report=", *tests], choice)
        for test in choice.failed:
            del choice.taken[test]
        modules = [name for name in sys.modules if not _is_of_tree(name)]
        found = {"seconds": choice.taken, "failed": [*choice.failed], "modules": modules}
        FOUND.write_text(json.dumps(found), encoding="utf-8")
        return 0

    if in_fork(work, PATIENCE):
        sys.exit(f"the tests do not end:\n{OUTPUT.read_text('utf-8')[-3000:]}")
    for test in json.loads(FOUND.read_text("utf-8"))["failed"]:
        print(f"left out, since it fails without a mutant: {test}", flush=True)


def _is_of_tree(name: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None) or ""
    return name.startswith("ansible_collections") or file.startswith(str(TREE))


def warm_up() -> None:
    """Import what the tests import, other than the code and the tests themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in json.loads(FOUND.read_text("utf-8"))["modules"]:
            with suppress(ImportError):
                import_module(name)
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def is_noticed(mutant: Mutant, reached: Reached) -> bool:
    """Whether a test fails, or takes far longer, with the mutant."""
    file, parts = TREE / mutant.file, [*reached.parts(mutant)]
    data, times = file.read_bytes(), file.stat()
    file.write_bytes(mutant.apply(data))
    try:
        for tests, seconds in parts:
            status = in_fork(
                lambda tests=tests: run_tests(["-x", *tests], Choice(reached.seconds)),
                LONGEST + 3 * seconds,
            )
            if status == pytest.ExitCode.NO_TESTS_COLLECTED:
                raise RuntimeError(f"no test ran for {mutant}\n{OUTPUT.read_text('utf-8')}")
            if status:
                return True
        return False
    finally:
        file.write_bytes(data)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


class Verdicts:
    """Whether each mutant was noticed; kept in a file."""

    def __init__(self) -> None:
        self.noticed: dict[Mutant, bool] = {}

    def read(self) -> list[Mutant]:
        """Read the last run, and return its survivors where they are in the code now."""
        now: dict[tuple[str, str, str], list[Mutant]] = defaultdict(list)
        for mutant in every(TREE):
            now[mutant.file, mutant.old, mutant.new].append(mutant)
        for written, noticed in json.loads(VERDICTS.read_text("utf-8")):
            mutant = Mutant(*written)
            same = now[mutant.file, mutant.old, mutant.new]
            if same and not noticed:
                mutant = min(same, key=lambda one, line=mutant.line: abs(one.line - line))
            if same or noticed:
                self.noticed[mutant] = noticed
        return [mutant for mutant, noticed in self.noticed.items() if not noticed]

    def add(self, mutant: Mutant, noticed: bool) -> None:
        self.noticed[mutant] = noticed
        VERDICTS.write_text(json.dumps(list(self.noticed.items())), encoding="utf-8")

    def table(self) -> str:
        """Return the score by folder."""
        score: dict[str, Counter[bool]] = defaultdict(Counter)
        for mutant, noticed in self.noticed.items():
            score[os.path.dirname(mutant.file)][noticed] += 1
        rows = [*sorted(score.items()), ("all", sum(score.values(), Counter()))]
        lines = [f"| {name} | {counts.total()} | {counts[True]} |" for name, counts in rows]
        return "\n".join(["| folder | mutants | noticed |", "|---|---|---|", *lines])


def main() -> int:
    """Return 0 if the tests could be run."""
    parser = argparse.ArgumentParser(description="Change the code, and count what no test notices.")
    parser.add_argument("--sample", type=int, default=400, help="how many mutants (400)")
    parser.add_argument("--seed", type=int, default=40, help="draws the sample (40)")
    parser.add_argument("--again", action="store_true", help="only the survivors of the last run")
    parser.add_argument("--keep", action="store_true", help="use the last copy and its tests")
    parser.add_argument("tests", nargs="*", help="files and directories of tests")
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(("ANSIBLE_", "TEST_COLLECTIONS"))]:
        del os.environ[name]  # as tests/conftest.py does; the tests take the collection of the copy
    if not given.keep:
        subprocess.run([ROOT / "tests/tools/copy", TREE], cwd=ROOT, check=True)
        find_reached(given.tests or [f"tests/{suite}" for suite in SUITES])
    warm_up()
    verdicts = Verdicts()
    drawn = verdicts.read() if given.again else sample(every(TREE), given.seed, given.sample)
    reached = Reached()
    for number, mutant in enumerate(drawn, 1):
        began = time.monotonic()
        noticed = is_noticed(mutant, reached)
        verdicts.add(mutant, noticed)
        if not noticed:
            is_reached = any(reached.tests(mutant))
            why = "survives" if is_reached else "is on a line that no test reaches"
            print(f"{number}: {why}: {mutant}", flush=True)
        elif time.monotonic() - began > LONGEST:
            print(f"{number}: noticed, but slowly: {mutant}", flush=True)
    print(f"\n{verdicts.table()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
