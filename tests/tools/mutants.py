# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants of the code below a directory: one small change each, and a sample of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

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
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}\n    - {self.old}\n    + {self.new}"

    def apply(self, data: bytes) -> bytes:
        """Return the mutated content of the file."""
        old = self.old.encode()
        return data[: self.start] + self.new.encode() + data[self.start + len(old) :]


class _Source:
    """The text of a file, and where its parts are."""

    def __init__(self, tree: Path, file: str) -> None:
        self.file = file
        self.data = (tree / file).read_bytes()
        lines = self.data.splitlines(keepends=True)
        self._starts = [sum(map(len, lines[:number])) for number in range(len(lines))]

    def start(self, node: ast.AST) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def text(self, node: ast.AST) -> str:
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        return self.data[self.start(node) : end].decode()

    def mutants(self) -> Iterator[Mutant]:
        """Yield every mutant of the file."""
        for node in _code(ast.parse(self.data)):
            for new in self._others(node):
                yield Mutant(self.file, node.lineno, self.start(node), self.text(node), new)

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


def every(tree: Path) -> list[Mutant]:
    """Return all mutants of the plugins in a copy of the collection."""
    files = sorted(str(path.relative_to(tree)) for path in tree.glob("plugins/**/*.py"))
    kept = [file for file in files if not file.startswith(NOT_MUTATED)]
    return [mutant for file in kept for mutant in _Source(tree, file).mutants()]


def sample(mutants: list[Mutant], seed: int, number: int) -> list[Mutant]:
    """Return mutants of different lines; each line is as likely as any other."""
    by_line: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_line[mutant.file, mutant.line].append(mutant)
    rng = Random(seed)
    lines = rng.sample(sorted(by_line), min(number, len(by_line)))
    return [rng.choice(by_line[line]) for line in lines]
