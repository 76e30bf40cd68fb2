"""Measure the plural modules: time and CPU against the ideal, loops and hosts.

python tests/benchmark/many.py [--only WORD]
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
CHECKOUT = __import__("conftest").CHECKOUT
from benchmark.loops import ATTRIBUTES, MODULE, Server, access, create, holds, over, play, word

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
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections"),
        "ANSIBLE_FORKS": str(forks),
    }
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
