# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Break the code on purpose, one line at a time, and check that the tests notice.

    python tests/tools/breaks.py [--before REVISION] [--table REVISION] [--jobs NUMBER] [--list] [WORD...]

Each entry of tests/breaks/*.yml has `break` (what goes wrong, in words), `file`, `old` and `new` (a
part of the file that occurs once, and what takes its place), and `red` (the test files that must
fail). Each break is applied to a copy of the tracked files, and the tests run there until the first
failure. A line tells which test files turned red; the exit status is 1 if one of `red` stayed
green. WORD selects the breaks whose area (the name of the YAML file), name or file contains it.

With `--before` the same is done to that revision, with what the entry has under `before` where it
differs. With `--table` both are done, and a Markdown table is printed. `--list` only checks that
each break can be applied.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
COPIES = ROOT / ".build/breaks"
LONGEST = 600  # seconds for the tests of one break


def entries(words: list[str]) -> list[dict]:
    """Return the breaks whose area, name or file contains one of the words, or all."""
    every = []
    for file in sorted((ROOT / "tests/breaks").glob("*.yml")):
        every += [
            {"area": file.stem, **entry}
            for entry in yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        ]
    names = [entry["break"] for entry in every]
    assert len(set(names)) == len(names), sorted(
        name for name in set(names) if names.count(name) > 1
    )
    return [
        entry
        for entry in every
        if not words
        or any(word in f"{entry['area']} {entry['break']} {entry['file']}" for word in words)
    ]


class Tree:
    """A copy of the tracked files, or of those of a revision, in which one break at a time is
    applied.
    """

    def __init__(self, directory: Path, revision: str | None) -> None:
        self._directory, self._revision = directory, revision
        subprocess.run([ROOT / "tests/tools/copy", directory], cwd=ROOT, check=True)
        if revision:
            subprocess.run(
                f"rm -rf {directory}/* && git archive {revision} | tar --extract --directory={directory}",
                shell=True,
                cwd=ROOT,
                check=True,
            )

    def try_out(self, entry: dict, run: Callable[[dict], str]) -> str:
        """Return what `run` says while the break is applied, or why it cannot be."""
        entry = {**entry, **(entry.get("before", {}) if self._revision else {})}
        path = self._directory / entry["file"]
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if text.count(entry["old"]) != 1:
            return (
                f"cannot be applied: {entry['file']} contains it {text.count(entry['old'])} times"
            )
        path.write_text(text.replace(entry["old"], entry["new"]), encoding="utf-8")
        try:
            return run(entry)
        finally:
            path.write_text(text, encoding="utf-8")

    def red(self, entry: dict) -> str:
        """Return the test files of the entry that turn red, and which did not."""
        says = {file: self._says(file) for file in entry["red"]}
        return (
            ", ".join(
                _short(file) if said == "red" else f"{_short(file)} ({said.upper()})"
                for file, said in says.items()
            )
            or "nothing"
        )

    def _says(self, file: str) -> str:
        directory = os.path.dirname(sys.executable)
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{directory}:{os.environ['PATH']}",
        }
        environment.pop(
            "TEST_COLLECTIONS", None
        )  # the tests install the broken collection themselves
        # Those marked `matrix` too, which a build server runs.
        which = ["-m", "not stress", "-q", "-x", file]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *which]
        try:
            done = subprocess.run(
                command,
                cwd=self._directory,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end in {LONGEST} s"
        if done.returncode == 1 and re.search(r"\b\d+ (failed|error)", done.stdout):
            return "red"
        return "green" if done.returncode == 0 else f"exit status {done.returncode}"


@contextmanager
def copies(number: int, revision: str | None) -> Iterator[list[Tree]]:
    """Make copies that no other run of this tool uses."""
    COPIES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=COPIES) as directory:
        yield [Tree(Path(directory) / str(each), revision) for each in range(number)]


def _short(file: str) -> str:
    """Return the suite and the name of a test file, such as `unit: test_retry`."""
    return f"{file.split('/')[1]}: {Path(file).stem}"


def results(chosen: list[dict], revision: str | None, jobs: int) -> list[str]:
    """Print which tests each break turns red as it ends, and return that; each job has a copy of
    its own.
    """
    own = threading.local()

    def take_tree() -> None:
        own.tree = trees.pop()

    def try_out(entry: dict) -> str:
        began = time.monotonic()
        said = own.tree.try_out(entry, own.tree.red)
        verdict = "ok " if is_red(said) else "NOT"
        seconds = time.monotonic() - began
        print(f"{verdict} {entry['break']}: {said}, {seconds:.0f} s", flush=True)
        return said

    with copies(jobs, revision) as trees, ThreadPoolExecutor(jobs, initializer=take_tree) as pool:
        return list(pool.map(try_out, chosen))


def is_red(said: str) -> bool:
    """Whether all the test files of a break turned red."""
    return not re.search(r"[(][A-Z]|cannot be applied", said)


def check(chosen: list[dict], revision: str | None, jobs: int) -> int:
    """Try the breaks; return how many were missed."""
    missed = sum(not is_red(said) for said in results(chosen, revision, jobs))
    print(f"{len(chosen) - missed} passed, {missed} failed")
    return missed


def table(chosen: list[dict], revision: str, jobs: int) -> int:
    """Print a Markdown table of what turns red in that revision and now; return how many were
    missed.
    """
    before, now = results(chosen, revision, jobs), results(chosen, None, jobs)
    print("| area | break | red before | red now |\n|---|---|---|---|")
    for entry, *said in zip(chosen, before, now):
        print("|", " | ".join([entry["area"], entry["break"], *said]), "|")
    return sum(not is_red(said) for said in [*before, *now])


def applicable(chosen: list[dict]) -> int:
    """Print the breaks; return how many cannot be applied or name a test file that does not exist."""
    wrong = 0
    with copies(1, None) as (tree,):
        every = [tree.try_out(entry, lambda _entry: "") for entry in chosen]
    for entry, said in zip(chosen, every):
        missing = [file for file in entry["red"] if not (ROOT / file).exists()]
        problem = said or (f"no such file: {', '.join(missing)}" if missing else "")
        wrong += bool(problem)
        print(f"{entry['area']}: {entry['break']}{f' - {problem}' if problem else ''}")
    return wrong


def main() -> int:
    """Return 0 if each break was noticed."""
    parser = argparse.ArgumentParser(
        description="Break the code on purpose and check that the tests notice."
    )
    parser.add_argument(
        "--before", metavar="REVISION", help="use that revision instead of the working tree"
    )
    parser.add_argument(
        "--table", metavar="REVISION", help="print a table of what is red there and now"
    )
    parser.add_argument(
        "--jobs", metavar="NUMBER", type=int, default=2, help="how many breaks to try at once (2)"
    )
    parser.add_argument(
        "--list", action="store_true", help="only check that each break can be applied"
    )
    parser.add_argument("words", nargs="*", help="part of the area, name or file of the breaks")
    given = parser.parse_args()
    chosen = entries(given.words)
    if given.list:
        missed = applicable(chosen)
    elif given.table:
        missed = table(chosen, given.table, given.jobs)
    else:
        missed = check(chosen, given.before, given.jobs)
    return 1 if missed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
