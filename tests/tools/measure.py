"""Measure how much code there is, and compare it with LIMITS; the status is 1 if one is exceeded.

    python tests/tools/measure.py [--folders] [--trace[=one|=lost|=list]]... [--verbose]

The files are read:

- characters: of code in plugins/, without indentation, documentation, docstrings, comments, blank
  lines and doc fragments;
- syntax nodes: of the same files, docstrings included;
- classes: in plugins/, doc fragments included;
- files: of module_utils and plugin_utils that hold code;
- characters beside plugins/: templates, doc fragments, playbooks and roles, extensions, without
  indentation, comments of YAML and blank lines, so that no code hides there.

With `--trace` one task runs with an SQLite ledger in the Ansible worker, from .build/collections
(`make artifact`), under a profile hook (tests/support/plugins/callback/tracer.py), and the files of
plugins/ are counted through which calls and returns pass: of a task that creates a machine
(`--trace`), whose answer is lost (`--trace=lost`), and of a list of three with its threads, one of
whose answers is lost (`--trace=list`). `--verbose` prints each change of file, and the function
where the flow enters it.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

# What is reached. Lower a limit when less is reached; only a new field, option or operation raises
# one, by what it needs.
LIMITS = {
    "characters": 281_238,
    "syntax nodes": 65_408,
    "classes": 95,
    "files": 55,
    "mean width": 43.7,
    "percent of lines over 100": 0.14,
    "files over 220 lines": 8,
    "functions over 40 lines": 0,
    "characters of templates": 15_164,
    "characters of doc fragments": 18_739,
    "characters of playbooks and roles": 27_180,
    "characters of extensions": 102_040,
    "files of a creation": 22,
    "files of a lost answer": 22,
    "files of a list": 18,
}
LONGEST_FILE = 220  # lines of code
LONGEST_FUNCTION = 40  # lines from the first statement to the last
WIDEST = 100  # characters of a line
_DOCUMENTATION = ("DOCUMENTATION", "EXAMPLES", "RETURN")
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

# What the characters beside the code are counted in.
BESIDE = {
    "characters of templates": ["plugins/**/*.html", "plugins/**/*.xml", "plugins/**/*.j2"],
    "characters of doc fragments": ["plugins/doc_fragments/*.py"],
    "characters of playbooks and roles": ["playbooks/**/*.yml", "roles/**/*.yml", "roles/**/*.j2"],
    "characters of extensions": ["extensions/**/*.*"],
}

PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machine:
        name: web01
        attributes: {cpu: 4}
        ledger: '{{ playbook_dir }}/ledger.db'
      ignore_errors: true
"""
LIST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: [{name: web01}, {name: web02}, {name: web03}]
        defaults: {attributes: {cpu: 4}}
        ledger: '{{ playbook_dir }}/ledger.db'
      ignore_errors: true
"""
# What is traced: the play, whether an answer is lost, and the limit.
TRACES = {
    "one": (PLAY, False, "files of a creation"),
    "lost": (PLAY, True, "files of a lost answer"),
    "list": (LIST, True, "files of a list"),
}


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
        for node in ast.walk(_tree(path))
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


def _tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def files() -> list[Path]:
    """Return the files of the plugins, without the doc fragments."""
    return [
        path
        for path in sorted((ROOT / "plugins").rglob("*.py"))
        if path.parent.name != "doc_fragments"
    ]


def beside(patterns: list[str]) -> int:
    """Return the characters of files beside the code: all of a template or documentation, and of
    YAML and Python what is no comment.
    """
    paths = {path for pattern in patterns for path in ROOT.glob(pattern)}
    lines = [
        line.strip()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md"
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sum(len(line) for line in lines if not line.startswith("#"))


def measured() -> dict[str, float]:
    """Return the figure of each limit that needs no run."""
    code = {path: code_lines(path) for path in files()}
    lines = [line for of_file in code.values() for line in of_file]
    everything = [node for path in code for node in ast.walk(_tree(path))]
    fragments = [
        node for path in ROOT.glob("plugins/doc_fragments/*.py") for node in ast.walk(_tree(path))
    ]
    utils = [path for path in code if {"module_utils", "plugin_utils"} & {*path.parts}]
    return {
        "characters": sum(len(line.strip()) for line in lines),
        "syntax nodes": len(everything),
        "classes": sum(isinstance(node, ast.ClassDef) for node in everything + fragments),
        "files": sum(bool(code[path]) for path in utils),
        "mean width": round(sum(map(len, lines)) / len(lines), 1),
        "percent of lines over 100": round(
            100 * sum(len(line) > WIDEST for line in lines) / len(lines), 2
        ),
        "files over 220 lines": sum(len(of_file) > LONGEST_FILE for of_file in code.values()),
        "functions over 40 lines": sum(len(long_functions(path)) for path in code),
        **{name: beside(patterns) for name, patterns in BESIDE.items()},
    }


def trace(directory: Path, play: str, is_lost: bool) -> list[str]:
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
        if is_lost:
            service.fault(kind="drop", when="after")
        ansible = Ansible(directory, collections, service.url, "local")
        ansible.playbook(
            play,
            ANSIBLE_CALLBACKS_ENABLED="tracer",
            ANSIBLE_CALLBACK_PLUGINS=str(plugins),
            TRACER_FILE=str(directory / "trace"),
        ).ok()
    return (directory / "trace").read_text(encoding="utf-8").splitlines()


def folders() -> list[str]:
    """Return the characters of code of each folder."""
    count: Counter[str] = Counter()
    for path in files():
        folder = os.fspath(path.parent.relative_to(ROOT / "plugins"))
        count[folder] += sum(len(line.strip()) for line in code_lines(path))
    return [f"{characters:7,} {folder}" for folder, characters in sorted(count.items())]


def main() -> int:
    """Print the figures with their limits; return 1 if one is exceeded."""
    parser = argparse.ArgumentParser(description="Measure the code.")
    parser.add_argument("--folders", action="store_true", help="characters of each folder as well")
    parser.add_argument("--trace", nargs="?", const="one", choices=TRACES, action="append")
    parser.add_argument("--verbose", action="store_true", help="each change of file of a trace")
    given = parser.parse_args()
    figures = measured()
    details = folders() if given.folders else []
    for kind in given.trace or []:
        play, is_lost, name = TRACES[kind]
        with tempfile.TemporaryDirectory() as directory:
            visited = trace(Path(directory), play, is_lost)
        figures[name] = len({line.split()[0] for line in visited})
        details.append(f"{name}: {len(visited) - 1} changes of file")
        details += visited if given.verbose else []
    exceeded = [name for name, figure in figures.items() if figure > LIMITS[name]]
    for name, figure in figures.items():
        mark = "  more than the limit" if name in exceeded else ""
        print(f"{figure:10,} of {LIMITS[name]:10,} {name}{mark}")
    for line in details:
        print(line)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
