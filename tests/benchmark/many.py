"""Measure the plural modules: time and CPU against loops and hosts.

python tests/benchmark/many.py [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
CHECKOUT = __import__("conftest").CHECKOUT
from benchmark.loops import ATTRIBUTES, MODULE, access, create, over, play

HERE = Path(__file__).resolve().parent
PLURAL = f"{MODULE}s"
ROUNDS = 3  # the median counts
ENVIRONMENT = {
    "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections"),
}
EMPTY = {"ansible.builtin.debug": {"msg": "nothing"}}


class Running:
    """A service in a separate process."""

    def __init__(self, script: str, argument: object) -> None:
        line = [sys.executable, str(HERE / script), str(argument)]
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()


@contextmanager
def service(seconds: float = 0.0) -> Iterator[Running]:
    """A service that takes `seconds` per answer."""
    running = Running("server.py", seconds)
    try:
        yield running
    finally:
        running.process.communicate()


def listed(directory: Path, count: int, prefix: str = "vm", attributes: dict | None = None) -> str:
    """A template that reads `count` machines from a file: building it with filters would be
    ansible-core's cost.
    """
    path = directory / f"{prefix}-{count}.json"
    machines = [
        {"name": f"{prefix}-{number}", "attributes": attributes or ATTRIBUTES}
        for number in range(count)
    ]
    path.write_text(json.dumps(machines), "utf-8")
    return f"{{{{ lookup('ansible.builtin.file', '{path}') | from_json }}}}"


def many(machines: str, concurrency: int, **options) -> dict:
    """A task that creates machines, `concurrency` at once."""
    return {
        PLURAL: {
            "virtual_machines": machines,
            "concurrency": concurrency,
            "asset_fields": ["id"],
            **options,
        }
    }


class Cost(NamedTuple):
    """The cost of a run of ansible-playbook."""

    seconds: float
    cpu: float  # seconds, including its children
    memory: int  # bytes of the largest process


def run(
    tasks: list[dict], running: Running, directory: Path, hosts: int = 1, **environment: str
) -> Cost:
    """Run tasks in a separate ansible-playbook."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    play(tasks, hosts, directory, **access(running), **ENVIRONMENT, **environment)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, after.ru_maxrss * 1024)


def median(take: Callable[[int], float], rounds: int = ROUNDS) -> float:
    """Return the median of this many measurements, each given its number."""
    return statistics.median(take(number) for number in range(rounds))


def over_empty(
    tasks: Callable[[int], list[dict]], running: Running, directory: Path, rounds: int = ROUNDS
) -> float:
    """Return the seconds of tasks in excess of an empty play, measured side by side."""

    def take(number: int) -> float:
        return (
            run(tasks(number), running, directory).seconds
            - run([EMPTY], running, directory).seconds
        )

    return median(take, rounds)


def slow_service(directory: Path) -> tuple[float, float, float]:
    """Return three ratios: seconds to the ideal, with the ledger to without, and the CPU of as many
    hosts to ours.
    """
    machines = listed(directory, 1000)
    plain, kept = many(machines, 50), many(machines, 50, ledger=str(directory / "slow.db"))
    with service(1.0) as running:
        empty = run([EMPTY], running, directory)
        ours, ledger = (run([task], running, directory) for task in (plain, kept))
        hosts = run(
            [create("vm-{{ inventory_hostname }}")], running, directory, 1000, ANSIBLE_FORKS="50"
        )
    seconds = ours.seconds - empty.seconds
    return (
        seconds / 20,
        (ledger.seconds - empty.seconds) / seconds,
        (hosts.cpu - empty.cpu) / (ours.cpu - empty.cpu),
    )


def against_a_loop(directory: Path) -> float:
    machines = listed(directory, 1000)
    with service() as running:
        ours = over_empty(lambda number: [many(machines, 16)], running, directory)
        loop = over_empty(
            lambda number: [create("vm-{{ item }}", **over(1000))], running, directory
        )
    return ours / loop


class Row(NamedTuple):
    """What is measured, and the bar for each of its numbers."""

    measure: Callable
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="measure only work whose name contains this")
    given = parser.parse_args()
    held = []
    with tempfile.TemporaryDirectory() as scratch:
        for row in ROWS:
            if not any(given.only in name for name, *dummy in row.bars):
                continue
            measured = row.measure(Path(scratch))
            for number, (name, side, limit) in zip(
                measured if isinstance(measured, tuple) else (measured,), row.bars
            ):
                held.append(number >= limit if side == ">=" else number <= limit)
                print(
                    f"{name:50}{number:10.2f}{side:>5} {limit:g}{'' if held[-1] else '  NOT HELD'}",
                    flush=True,
                )
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
