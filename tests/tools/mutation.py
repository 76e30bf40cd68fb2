# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the code of plugins/ in one place at a time, and count the changes that no test notices.

    python tests/tools/mutation.py [--sample NUMBER] [--seed NUMBER] [--workers NUMBER] [--keep] [TEST...]

A sample of the mutants is drawn by a fixed seed; each line of code is as likely as any other. The
tests of TEST (the suites of SUITES) run once to find which of them reach which line; `--keep` uses
the copy and the result of an earlier run. A mutant runs in a copy of the tree, against the tests that reach its
line, the fastest first, until one fails. Survivors are printed with their change, then the score by
folder; a line that no test reaches in its own process is a survivor, too.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple
from xml.etree import ElementTree

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build/mutation"
TREE = BUILD / "tree"
SUITES = ("unit/plugins", "contract", "faults", "security", "tokens", "tls", "many", "ledger")
SUITES += ("story", "crossing")
LONGEST = 90  # seconds for the tests of a mutant; one that takes longer is noticed
NO_TESTS = 5  # pytest's exit status; with 4 the mutant broke the import of a conftest
MOST_TESTS = 150  # for one mutant, the fastest
NOT_MUTATED = ("plugins/modules/", "plugins/doc_fragments/")  # documentation, for the most part

OTHERS: dict[type[ast.AST], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.Mod: "*",
}


class Mutant(NamedTuple):
    """A part of a file, and what takes its place."""

    file: str
    line: int
    start: int  # in bytes of the file
    end: int
    new: str


class _Source:
    """The text of a file, and where its parts are."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.data = (TREE / file).read_bytes()
        lines = self.data.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:number])) for number in range(len(lines))]

    def place(self, node: ast.AST) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        start, end = self.place(node)
        return self.data[start:end].decode()

    def with_new(self, node: ast.AST, new: str) -> Mutant:
        return Mutant(self.file, node.lineno, *self.place(node), new)

    def mutants(self) -> Iterator[Mutant]:
        """Yield every mutant of the file."""
        for node in _code(ast.parse(self.data)):
            for new in self._others(node):
                yield self.with_new(node, new)

    def _others(self, node: ast.AST) -> Iterator[str]:
        """Yield what may take the place of a node."""
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
            return
        of_kind = _KINDS.get(type(node))
        if of_kind:
            yield from of_kind(node, self.text)


Text = Callable[[ast.AST], str]


def _other_comparisons(node: ast.Compare, text: Text) -> Iterator[str]:
    if len(node.ops) == 1:
        word = OTHERS[type(node.ops[0])]
        yield f"(({text(node.left)}) {word} ({text(node.comparators[0])}))"


def _other_operations(node: ast.BinOp, text: Text) -> Iterator[str]:
    if type(node.op) in OTHERS:
        yield f"(({text(node.left)}) {OTHERS[type(node.op)]} ({text(node.right)}))"


def _other_conditions(node: ast.BoolOp, text: Text) -> Iterator[str]:
    """Yield the parts joined by the other word, and the condition without each of them."""
    parts = [f"({text(value)})" for value in node.values]
    other = OTHERS[type(node.op)]
    yield f"({f' {other} '.join(parts)})"
    word = {"or": "and", "and": "or"}[other]
    for place in range(len(parts)):
        yield f"({f' {word} '.join(parts[:place] + parts[place + 1 :])})"


def _other_constants(node: ast.Constant, text: Text) -> Iterator[str]:
    if isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node.value, (int, float)):
        yield f"({text(node)} + 1)"
    elif isinstance(node.value, str) and node.value.isidentifier():
        yield repr(f"{node.value}_")  # names of keys, not messages


def _other_choices(node: ast.IfExp, text: Text) -> Iterator[str]:
    yield f"({text(node.body)})"
    yield f"({text(node.orelse)})"


def _without_not(node: ast.UnaryOp, text: Text) -> Iterator[str]:
    if isinstance(node.op, ast.Not):
        yield f"bool({text(node.operand)})"


def _other_results(node: ast.Return, _text: Text) -> Iterator[str]:
    if node.value is not None and getattr(node.value, "value", ...) is not None:
        yield "return None"


def _nothing(_node: ast.AST, _text: Text) -> Iterator[str]:
    yield "pass"


def _break(_node: ast.AST, _text: Text) -> Iterator[str]:
    yield "break"


_KINDS: dict[type[ast.AST], Callable[..., Iterator[str]]] = {
    ast.Compare: _other_comparisons,
    ast.BinOp: _other_operations,
    ast.BoolOp: _other_conditions,
    ast.UnaryOp: _without_not,
    ast.IfExp: _other_choices,
    ast.Constant: _other_constants,
    ast.Return: _other_results,
    ast.Continue: _break,
    **dict.fromkeys((ast.Raise, ast.AugAssign, ast.Delete, ast.Expr), _nothing),
}


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that run: no annotations, no documentation, no parts of texts."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_code = isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr)
            if is_code and not _is_documentation(child):
                yield child
                yield from _code(child)


def _is_documentation(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def sample(seed: int, number: int) -> list[Mutant]:
    """Return mutants of different lines; each line is as likely as any other."""
    files = sorted(str(path.relative_to(TREE)) for path in TREE.glob("plugins/**/*.py"))
    by_line: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for file in files:
        if not file.startswith(NOT_MUTATED):
            for mutant in _Source(file).mutants():
                by_line[mutant.file, mutant.line].append(mutant)
    rng = Random(seed)
    lines = rng.sample(sorted(by_line), min(number, len(by_line)))
    return [rng.choice(by_line[line]) for line in lines]


class Reached:
    """Which tests reach which lines, and how long each takes."""

    def __init__(self) -> None:
        self._data = CoverageData(str(BUILD / "contexts"))
        self._data.read()
        self._seconds = json.loads((BUILD / "seconds.json").read_text("utf-8"))

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a line, the fastest first.

        A line that runs when the file is imported is reached by all tests of the file.
        """
        lines = self._data.contexts_by_lineno(str(TREE / mutant.file))
        contexts = lines.get(mutant.line, [])
        if contexts and not _is_in_function(mutant):
            contexts = [context for each in lines.values() for context in each]
        found = {_function(context.rpartition("|")[0]) for context in contexts if context}
        return sorted(found, key=lambda name: self._seconds.get(name, LONGEST))[:MOST_TESTS]


def _function(test: str) -> str:
    """Return the name of a test without its parameters, which may contain anything."""
    return test.partition("[")[0]


def _is_in_function(mutant: Mutant) -> bool:
    kinds = (ast.FunctionDef, ast.Lambda)
    return any(
        node.lineno < mutant.line <= node.end_lineno
        for node in ast.walk(ast.parse((TREE / mutant.file).read_bytes()))
        if isinstance(node, kinds)
    )


def find_reached(tests: list[str], workers: int) -> None:
    """Run the tests once, and note which lines each of them reaches."""
    (BUILD / "coverage.ini").write_text(f"[run]\nsource = {TREE}/plugins\n", encoding="utf-8")
    more = ["-n", str(workers), "--dist", "loadfile", "-m", "not stress", "--cov"]
    more += ["--cov-config", str(BUILD / "coverage.ini"), "--cov-context=test", "--cov-report="]
    more += ["--junitxml", str(BUILD / "tests.xml"), "-o", "junit_family=xunit1"]
    done = _pytest([*more, *tests], {"COVERAGE_FILE": str(BUILD / "contexts")})
    if done.returncode:
        sys.exit(f"the tests fail without a mutant:\n{(done.stdout + done.stderr)[-3000:]}")
    note_seconds()


def note_seconds() -> None:
    """Write how long each test took, with all its parameters."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(BUILD / "tests.xml").iter("testcase"):
        name = _function(case.get("name", ""))
        seconds[f"{case.get('file')}::{name}"] += float(case.get("time", 0))
    (BUILD / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")


def _pytest(
    arguments: list[str], more: dict[str, str], timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    environment.pop("TEST_COLLECTIONS", None)  # the tests take the collection of the copy
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return subprocess.run(
        command,
        cwd=TREE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def is_noticed(mutant: Mutant, tests: list[str]) -> bool:
    """Whether a test fails, or takes too long, with the mutant."""
    file = TREE / mutant.file
    data = file.read_bytes()
    chosen = BUILD / "chosen"
    chosen.write_text("\n".join(tests), encoding="utf-8")
    file.write_bytes(data[: mutant.start] + mutant.new.encode() + data[mutant.end :])
    try:
        done = _pytest(["-x", f"@{chosen}"], {}, LONGEST)
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_bytes(data)
    if done.returncode == NO_TESTS:
        raise RuntimeError(f"no test ran for {shown(mutant)}\n{done.stdout}")
    return done.returncode != 0


def shown(mutant: Mutant) -> str:
    """Return a mutant as text."""
    old = (TREE / mutant.file).read_bytes()[mutant.start : mutant.end].decode()
    return f"{mutant.file}:{mutant.line}\n    - {old}\n    + {mutant.new}"


def main() -> int:
    """Return 0 if the tests could be run."""
    parser = argparse.ArgumentParser(description="Change the code, and count what no test notices.")
    parser.add_argument("--sample", type=int, default=400, help="how many mutants (400)")
    parser.add_argument("--seed", type=int, default=40, help="draws the sample (40)")
    parser.add_argument("--workers", type=int, default=2, help="of the first run (2)")
    parser.add_argument("--keep", action="store_true", help="use what an earlier run has found")
    parser.add_argument("tests", nargs="*", help="files and directories of tests")
    given = parser.parse_args()
    if not given.keep:
        subprocess.run([ROOT / "tests/tools/copy", TREE], cwd=ROOT, check=True)
        find_reached(given.tests or [f"tests/{suite}" for suite in SUITES], given.workers)
    reached, mutants = Reached(), sample(given.seed, given.sample)
    score: dict[str, Counter[bool]] = defaultdict(Counter)
    for number, mutant in enumerate(mutants, 1):
        tests = reached.tests(mutant)
        began = time.monotonic()
        noticed = bool(tests) and is_noticed(mutant, tests)
        if time.monotonic() - began > LONGEST:
            print(f"{number}: no end within {LONGEST} s, noticed: {shown(mutant)}", flush=True)
        score[os.path.dirname(mutant.file)][noticed] += 1
        if not noticed:
            why = "survives" if tests else "is on a line that no test reaches in its own process"
            print(f"{number}: {why}: {shown(mutant)}", flush=True)
    print("\n| folder | mutants | noticed |\n|---|---|---|")
    for folder, counts in [*sorted(score.items()), ("all", sum(score.values(), Counter()))]:
        print(f"| {folder} | {counts.total()} | {counts[True]} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
