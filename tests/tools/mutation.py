"""Change plugins/ in one place at a time with cosmic-ray, and count the changes no test notices.

    make mutation ARGUMENTS="[--sample NUMBER] [--seed NUMBER] [--minutes NUMBER] [FOLDER...]"

For each folder of FOLDERS a fixed seed draws lines, and one mutation of each line. cosmic-ray makes
them in a copy of the tree, and runs the tests of that folder without Ansible; what these do not
notice, the tests that start Ansible with the copy may. The survivors are printed with their change,
then the score by folder. A mutation that makes the tests take three times as long counts as noticed.
When the minutes are over, the rest is not tried.
"""

from __future__ import annotations

import argparse
import ast
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from antsibull_fileutils.copier import GitCopier
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build/mutation"
TREE = BUILD / "tree"
COLLECTIONS = BUILD / "collections"
PYTEST = f"{sys.executable} -m pytest -x -q --hypothesis-seed=1 -m 'not stress and not matrix and"
# The tests that start Ansible, for all folders.
WITH_ANSIBLE = (
    f"TEST_COLLECTIONS={COLLECTIONS} {PYTEST} ansible' -n 2 tests/crossing tests/many"
    " tests/integration tests/ledger tests/security"
)
UNIT = "tests/unit/plugins"

# The tests of each folder, those that notice most first; what does not exist is left out.
FOLDERS = {
    "plugin_utils/_ledger": [f"{UNIT}/plugin_utils/_ledger", "tests/story", "tests/ledger"],
    "plugin_utils/_run": [f"{UNIT}/plugin_utils/_run", "tests/story"],
    "plugin_utils/_screen": [f"{UNIT}/plugin_utils/_screen", "tests/story"],
    "plugin_utils": [f"{UNIT}/plugin_utils/test_csv.py", "tests/story"],
    "module_utils/_list": [f"{UNIT}/module_utils/_list", "tests/faults/test_generated.py"],
    "module_utils/_task": [f"{UNIT}/module_utils/_task", "tests/contract", "tests/tokens"],
    "module_utils/_resources": [f"{UNIT}/module_utils/_resources", "tests/contract"],
    "module_utils/_call": [f"{UNIT}/module_utils/_call", "tests/tokens", "tests/faults"],
    "module_utils/_http": [f"{UNIT}/module_utils/_http", "tests/tls", "tests/faults"],
    "module_utils": [f"{UNIT}/module_utils", "tests/security", "tests/contract"],
    "action": ["tests/story"],
    "inventory": [f"{UNIT}/inventory"],
    "filter": [f"{UNIT}/plugin_utils/test_csv.py"],
}


class Score(NamedTuple):
    """How the mutations of a folder ended."""

    folder: str
    noticed: int
    survived: int

    def __str__(self) -> str:
        tried = self.noticed + self.survived
        share = f"{self.noticed / tried:.0%}" if tried else "-"
        return f"| {self.folder} | {tried} | {self.noticed} | {share} |"


def annotations(file: Path) -> Iterator[tuple[int, int]]:
    """Yield the lines and columns of annotations, which no test can notice."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        for field in ("annotation", "returns"):
            part = getattr(node, field, None)
            for line in range(part.lineno, part.end_lineno + 1) if part else ():
                first = part.col_offset if line == part.lineno else 0
                last = part.end_col_offset if line == part.end_lineno else 999
                yield from ((line, column) for column in range(first, last))


def draw(database: WorkDB, number: int, seed: int) -> None:
    """Mark as skipped all mutations but one on each of so many lines."""

    def place(spec: MutationSpec) -> tuple[object, ...]:
        return (str(spec.module_path), *spec.start_pos, spec.operator_name, spec.occurrence)

    by_line: dict[tuple[object, ...], list[tuple[tuple[object, ...], str]]] = defaultdict(list)
    in_annotations: dict[Path, set[tuple[int, int]]] = {}
    for item in database.work_items:
        (spec,) = item.mutations
        path = TREE / spec.module_path
        if path not in in_annotations:
            in_annotations[path] = set(annotations(path))
        if spec.start_pos not in in_annotations[path]:
            by_line[place(spec)[:2]].append((place(spec), item.job_id))
    rng = Random(seed)
    lines = rng.sample(sorted(by_line), min(number, len(by_line)))
    drawn = {rng.choice(sorted(by_line[line]))[1] for line in lines}
    skipped = [item.job_id for item in database.work_items if item.job_id not in drawn]
    database.set_multiple_results(skipped, WorkResult(worker_outcome=WorkerOutcome.SKIPPED))


def cosmic_ray(*arguments: str, seconds: float | None = None) -> None:
    """Run a command of cosmic-ray in the copy of the tree."""
    line = [str(Path(sys.executable).with_name("cosmic-ray")), *arguments]
    subprocess.run(line, cwd=TREE, check=True, timeout=seconds)


def copy_tree() -> None:
    """Make a new copy of the tree, which Ansible finds as the installed collection."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.parent.mkdir(parents=True, exist_ok=True)
    GitCopier().copy(ROOT, TREE)
    for command in ("init", "--quiet"), ("add", "--all"):  # tests ask what is tracked
        subprocess.run(["git", *command], cwd=TREE, check=True)
    installed = COLLECTIONS / "ansible_collections/infrastructure/services"
    installed.parent.mkdir(parents=True, exist_ok=True)
    installed.unlink(missing_ok=True)
    installed.symlink_to(TREE)


def seconds_of(command: str) -> float:
    """Return how long tests take without a change; exit if one of them fails."""
    began = time.monotonic()
    done = subprocess.run(
        ["sh", "-c", command], cwd=TREE, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\n{command}: fails without a change")
    return time.monotonic() - began


def try_folder(
    folder: str, given: argparse.Namespace, seconds: float, with_ansible: float
) -> Score:
    """Draw the mutations of a folder, try them for at most so long, and print the survivors.

    `with_ansible`: how many seconds the tests take that start Ansible.
    """
    began = time.monotonic()
    copy_tree()
    files = sorted(
        path.relative_to(TREE).as_posix() for path in (TREE / "plugins" / folder).glob("*.py")
    )
    tests = [name for name in FOLDERS[folder] if (TREE / name).exists()]
    if not files or not tests:
        return Score(folder, 0, 0)
    alone = f"{PYTEST} not ansible' {' '.join(tests)}"
    patience = 60 + 3 * (seconds_of(alone) + with_ansible)
    command = f"{alone} && {WITH_ANSIBLE}"
    config, session = BUILD / "config.toml", BUILD / "session.sqlite"
    config.write_text(
        "[cosmic-ray]\n"
        f"module-path = {json.dumps(files)}\nexcluded-modules = []\ntimeout = {patience}\n"
        f"test-command = {json.dumps(f'timeout {patience:.0f} sh -c {shlex.quote(command)}')}\n"
        '[cosmic-ray.distributor]\nname = "local"\n',
        encoding="utf-8",
    )
    session.unlink(missing_ok=True)
    cosmic_ray("init", str(config), str(session))
    with use_db(session) as database:
        draw(database, given.sample, given.seed)
    try:
        left = began + seconds - time.monotonic()
        cosmic_ray("exec", str(config), str(session), seconds=max(left, 60))
    except subprocess.TimeoutExpired:
        print(f"{folder}: the time is over", flush=True)
    return report(folder, session)


def report(folder: str, session: Path) -> Score:
    """Print the survivors of a session, and return the score."""
    with use_db(session) as database:
        ended = [
            one for _name, one in database.completed_work_items if one.test_outcome is not None
        ]
    survivors = [one for one in ended if one.test_outcome == TestOutcome.SURVIVED]
    for survivor in survivors:
        print(f"--- a survivor in {folder}:\n{survivor.diff}", flush=True)
    score = Score(folder, len(ended) - len(survivors), len(survivors))
    print(score, flush=True)
    return score


def main() -> None:
    """Try the folders one after the other."""
    parser = argparse.ArgumentParser(description="Change the code; count what no test notices.")
    parser.add_argument("--sample", type=int, default=40, help="mutations for each folder (40)")
    parser.add_argument("--seed", type=int, default=47, help="draws the sample (47)")
    parser.add_argument("--minutes", type=float, default=300, help="for all folders (300)")
    parser.add_argument("folders", nargs="*", help="folders of plugins (all)")
    given = parser.parse_args()
    end = time.monotonic() + given.minutes * 60
    copy_tree()
    with_ansible = seconds_of(WITH_ANSIBLE)
    folders = given.folders or list(FOLDERS)
    scores = []
    for number, folder in enumerate(folders):
        left = (end - time.monotonic()) / (len(folders) - number)
        scores.append(try_folder(folder, given, left, with_ansible))
    total = Score("all", sum(one.noticed for one in scores), sum(one.survived for one in scores))
    print("\n| folder | mutations | noticed | score |\n|---|--:|--:|--:|")
    print(*scores, total, sep="\n")


if __name__ == "__main__":
    main()
