# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure how much code `plugins/` is, and how far one task travels through it.

    python tests/tools/measure.py [--folders] [--trace [--verbose]]

The first line counts lines of code (no documentation, docstring, comment or blank line; no doc
fragment) and files. With `--trace`, one task with an SQLite ledger runs in the Ansible worker, from
.build/collections (`make artifact`), under a profile hook
(tests/support/plugins/callback/tracer.py); the second line counts how often the flow of calls and
returns changes from one file of the collection to another, and how many files it visits. With
`--verbose`, each change is a line: the file, and the function where the flow enters it.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
LONGEST_FILE = 300  # lines of code
LONGEST_FUNCTION = 40  # lines from the first statement to the last
_DOCUMENTATION = ("DOCUMENTATION", "EXAMPLES", "RETURN")
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machine:
        name: web01
        attributes: {cpu: 4}
        ledger: ledger.db
"""


def code_lines(path: Path) -> list[str]:
    """Return the lines that hold code: no documentation, docstring, comment or blank line."""
    text = path.read_text(encoding="utf-8")
    prose = {
        line
        for node in ast.walk(ast.parse(text))
        if _is_prose(node)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in _NO_CODE]
    numbers = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - prose
    lines = text.splitlines()
    return [lines[number - 1] for number in sorted(numbers)]


def long_functions(path: Path, longest: int = LONGEST_FUNCTION) -> dict[str, int]:
    """Return the functions of more than `longest` lines, without signature and docstring."""
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return {
        function.name: _length(function) for function in functions if _length(function) > longest
    }


def _length(function: ast.FunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def _is_prose(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in _DOCUMENTATION


def files() -> list[Path]:
    """Return the files of the plugins, without the doc fragments."""
    return [
        path
        for path in sorted((ROOT / "plugins").rglob("*.py"))
        if path.parent.name != "doc_fragments"
    ]


def trace(directory: Path) -> list[str]:
    """Return the file and function of each call and return of one task, in order, without repeats
    of the same file.
    """
    from support.emulating import emulating  # noqa: PLC0415  (only this needs an installed collection)
    from support.running import Ansible  # noqa: PLC0415

    collections = ROOT / ".build/collections"
    plugins = ROOT / "tests/support/plugins/callback"
    with emulating(
        collections / "ansible_collections/infrastructure/services", directory
    ) as service:
        ansible = Ansible(directory, collections, service.url, "local")
        ansible.playbook(
            PLAY,
            ANSIBLE_CALLBACKS_ENABLED="tracer",
            ANSIBLE_CALLBACK_PLUGINS=str(plugins),
            TRACER_FILE=str(directory / "trace"),
        ).ok()
    return (directory / "trace").read_text(encoding="utf-8").splitlines()


def _name(path: Path) -> str:
    return os.fspath(path.relative_to(ROOT / "plugins"))


def main(arguments: list[str]) -> None:
    """Print the figures."""
    code = {path: code_lines(path) for path in files()}
    lines = [line for of_file in code.values() for line in of_file]
    largest = sorted(code, key=lambda path: -len(code[path]))[:5]
    print(f"plugins/: {len(lines):,} lines of code in {len(code)} files")
    print(f"characters without indentation: {sum(len(line.strip()) for line in lines):,}")
    print(f"characters a line: {sum(map(len, lines)) / len(lines):.1f}")
    print(f"lines over 100: {sum(len(line) > 100 for line in lines) / len(lines):.2%}")
    print(
        f"functions over {LONGEST_FUNCTION} lines:", sum(len(long_functions(path)) for path in code)
    )
    print(
        f"files over {LONGEST_FILE} lines:",
        sum(len(of_file) > LONGEST_FILE for of_file in code.values()),
    )
    print("largest:", ", ".join(f"{_name(path)} {len(code[path])}" for path in largest))
    if "--folders" in arguments:
        folders = Counter()
        for path, of_file in code.items():
            folders[_name(path.parent)] += sum(len(line.strip()) for line in of_file)
        print("\n".join(f"{count:7,} {folder}" for folder, count in sorted(folders.items())))
    if "--trace" in arguments:
        with tempfile.TemporaryDirectory() as directory:
            visited = trace(Path(directory))
        files_visited = {line.split()[0] for line in visited}
        print(
            f"one task with a ledger: {len(visited) - 1} changes of file in"
            f" {len(files_visited)} files"
        )
        if "--verbose" in arguments:
            print("\n".join(visited))


if __name__ == "__main__":
    main(sys.argv[1:])
