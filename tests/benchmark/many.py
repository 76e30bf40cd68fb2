"""Measure the plural modules against the ideal, loops and hosts, and what a ledger costs.

python tests/benchmark/many.py [--only WORD]
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
CHECKOUT = __import__("conftest").CHECKOUT  # which also makes the collection importable
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    Change,
    Entry,
    Key,
    Write,
    stamped,
)
from benchmark.loops import ATTRIBUTES, MODULE, Server, access, create, holds, over, play, word
from support.ledgers import opened

BIN = Path(sys.executable).parent
INSTALLED = {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections")}
RESOURCE = "compute_virtual_machine"
ROUNDS = 3  # the median counts
EMPTY = {"ansible.builtin.debug": {"msg": "nothing"}}


def many(directory: Path, concurrency: int, **options: object) -> dict:
    """A task that creates 1000 machines, `concurrency` at once.

    A template reads them from a file: building them with filters would be ansible-core's cost.
    """
    path = directory / "machines.json"
    machines = [{"name": f"vm-{number}", "attributes": ATTRIBUTES} for number in range(1000)]
    path.write_text(json.dumps(machines), "utf-8")
    listed = f"{{{{ lookup('ansible.builtin.file', '{path}') | from_json }}}}"
    shared = {"virtual_machines": listed, "concurrency": concurrency, "asset_fields": ["id"]}
    return {f"{MODULE}s": {**shared, **options}}


class Cost(NamedTuple):
    """The seconds of a run of ansible-playbook, and those of processors."""

    seconds: float
    cpu: float

    def over(self, empty: Cost) -> Cost:
        """The cost in excess of an empty play."""
        return Cost(self.seconds - empty.seconds, self.cpu - empty.cpu)


def run(task: dict, server: Server, directory: Path, hosts: int = 1, forks: int = 10) -> Cost:
    """Run a task in a separate ansible-playbook."""
    environment = {**INSTALLED, "ANSIBLE_FORKS": str(forks)}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    play([task], hosts, directory, **access(server), **environment)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def slow_service(directory: Path) -> tuple[float, ...]:
    """Return three ratios: seconds to the ideal, with the ledger to without, and the CPU of as many
    hosts to ours.
    """
    host = create("vm-{{ inventory_hostname }}")
    with Server(1.0) as server:
        empty = run(EMPTY, server, directory)
        ours = run(many(directory, 50), server, directory).over(empty)
        kept = many(directory, 50, ledger=str(directory / "slow.db"))
        ledger = run(kept, server, directory).over(empty)
        hosts = run(host, server, directory, 1000, 50).over(empty)
    return ours.seconds / 20, ledger.seconds / ours.seconds, hosts.cpu / ours.cpu


def against_a_loop(directory: Path) -> tuple[float, ...]:
    """Return the ratio to a loop; each measured beside an empty play."""

    def seconds(task: dict) -> float:
        return statistics.median(
            run(task, server, directory).over(run(EMPTY, server, directory)).seconds
            for _round in range(ROUNDS)
        )

    with Server() as server:
        loop = create("vm-{{ item }}", **over(1000))
        return (seconds(many(directory, 16)) / seconds(loop),)


def loop_with_ledger(directory: Path) -> tuple[float, ...]:
    """Return the ratio of a loop of 1000 with the ledger to one without; each round creates
    different machines.
    """
    tasks = []
    for number in range(ROUNDS + 1):
        for name, ledger in (("with", str(directory / "loop.db")), ("without", "")):
            call = {
                "name": f"vm-{number}-{{{{ item }}}}",
                "attributes": ATTRIBUTES,
                "ledger": ledger,
            }
            tasks.append({"name": name, MODULE: call, **over(1000)})
    with Server() as server:
        lines = play(tasks, 1, directory, **access(server), **INSTALLED)[2:]
    seconds = [
        [line["seconds"] for line in lines if line["task"] == name] for name in ("with", "without")
    ]
    ours, theirs = map(statistics.median, seconds)
    return (ours / theirs,)


def recorded(name: str) -> dict:
    """Return the envelope of a machine."""
    return {"id": name, "name": name, "attributes": {"ip": "192.0.2.1"}}


def fill(location: str, count: int) -> None:
    """Record machines as tasks would, in one transaction."""
    assets = [recorded(f"vm{number:06}") for number in range(count)]
    with opened(location, "https://s") as ledger:
        changes = [
            Change(Write.EDIT, Key(RESOURCE, asset["name"]), None, Entry(DONE, asset, asset))
            for asset in assets
        ]
        ledger.write([stamped(change) for change in changes])


def inventory(directory: Path) -> tuple[float, ...]:
    """Return the ratio of the seconds that ansible-inventory takes to load 10,000 hosts from a
    ledger to those from a static inventory.

    It prints only one of them: printing is ansible-core's work, and the same for both.
    """
    files = {
        "fleet.ledger.yml": f"plugin: infrastructure.services.ledger\nledger: {directory}/ledger.db\n",
        "static.json": json.dumps(
            {
                "all": {
                    "hosts": {
                        f"vm{number:06}": {
                            "ansible_host": "192.0.2.1",
                            RESOURCE: recorded(f"vm{number:06}"),
                        }
                        for number in range(10_000)
                    }
                }
            }
        ),
    }
    location = str(directory / "ledger.db")
    fill(location, 10_000)
    for name, content in files.items():
        (directory / name).write_text(content, "utf-8")
    ours, theirs = (
        statistics.median(once(directory / name) for dummy in range(ROUNDS)) for name in files
    )
    return (ours / theirs,)


def once(inventory: Path) -> float:
    """Return the seconds of one start."""
    started = time.perf_counter()
    line = [BIN / "ansible-inventory", "-i", inventory, "--host", "vm000001"]
    subprocess.run(line, stdout=subprocess.DEVNULL, check=True, env={**os.environ, **INSTALLED})
    return time.perf_counter() - started


class Row(NamedTuple):
    """What is measured, and the bar for each of its numbers."""

    measure: Callable[[Path], tuple[float, ...]]
    bars: tuple[tuple[str, str, float], ...]  # what, the side of the bar, the bar


ROWS = (
    Row(
        slow_service,
        (
            ("1000 machines of 1 s, 50 at once / 20 s", "<=", 1.2),
            ("the same, with ledger / without", "<=", 1.15),
            ("CPU, 1000 hosts with forks / at once", ">=", 8),
        ),
    ),
    Row(against_a_loop, (("1000 machines of 0 s, 16 at once / loop", "<=", 0.5),)),
    Row(loop_with_ledger, (("loop of 1000, SQLite ledger / none", "<=", 2.0),)),
    Row(inventory, (("inventory of 10,000, ledger / static JSON", "<=", 0.7),)),
)


def main() -> None:
    """Print a line for each number; exit with 1 when a bar does not hold."""
    only, held = word(__doc__), []
    with tempfile.TemporaryDirectory() as scratch:
        for row in ROWS:
            if any(only in what for what, _side, _limit in row.bars):
                for figure, (what, side, limit) in zip(row.measure(Path(scratch)), row.bars):
                    held.append(holds(what, figure, side, limit))
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
