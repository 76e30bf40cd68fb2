# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure the plural modules: time and CPU against loops, hosts and async, memory, and the effect
on a weak service.

python tests/benchmark/many.py [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
CHECKOUT = __import__("conftest").CHECKOUT
from benchmark.loops import ATTRIBUTES, MODULE, access, create, over, play, uri

HERE = Path(__file__).resolve().parent
PLURAL = f"{MODULE}s"
ROUNDS = 3  # the median counts
ENVIRONMENT = {
    "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections"),
    "ANSIBLE_ACTION_PLUGINS": str(HERE / "action"),
}
EMPTY = {"ansible.builtin.debug": {"msg": "nothing"}}
WAIT = {
    "ansible.builtin.async_status": {"jid": "{{ item.ansible_job_id }}"},
    "loop": "{{ jobs.results }}",
    "register": "job",
    "until": "job is finished",
    "retries": 600,
    "delay": 0.1,
}


class Running:
    """A service in a separate process."""

    def __init__(self, script: str, argument: object) -> None:
        line = [sys.executable, str(HERE / script), str(argument)]
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()

    def counts(self) -> dict:
        """The counts of the limited service's answers."""
        with urllib.request.urlopen(f"{self.url}/counts") as answer:
            return json.load(answer)


@contextmanager
def service(seconds: float = 0.0, **limits) -> Iterator[Running]:
    """A service that takes `seconds` per answer, with limits."""
    settings = json.dumps({"seconds": seconds, **limits})
    running = Running("limited.py", settings) if limits else Running("server.py", seconds)
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


def handed_over(directory: Path, count: int) -> dict:
    """A no-op task with the options and the result of one that finds as many machines already done."""
    items = [
        {
            "item": f"vm-{number}",
            "changed": False,
            "failed": False,
            "outcome": "not_sent",
            "status": None,
            "request_attempts": 0,
            "asset": {"id": f"vm-{number}"},
        }
        for number in range(count)
    ]
    facts = {PLURAL.rpartition(".")[2]: {item["item"]: item["asset"] for item in items}}
    result = {"changed": False, "outcome": "not_sent", "results": items, "ansible_facts": facts}
    (directory / "result.json").write_text(json.dumps(result), "utf-8")
    return {
        "handed_over": {
            "given": listed(directory, count),
            "returned": str(directory / "result.json"),
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


def against_async(directory: Path) -> float:
    """Return the ratio, which follows how long the machine takes to start a job: 0.25 to 0.6 s."""
    started = uri("vm-{{ item }}", **over(50), register="jobs", **{"async": 600, "poll": 0})
    machines = listed(directory, 50)
    with service(1.0) as running:
        ours = over_empty(lambda number: [many(machines, 20)], running, directory)
        theirs = over_empty(lambda number: [started, WAIT], running, directory, 1)
    return theirs / ours


def ten_thousand(directory: Path) -> tuple[float, float, float]:
    """Return the seconds of a run that finds everything done, of its plan, and of ansible-core
    alone.
    """
    task = many(listed(directory, 10_000), 100, ledger=str(directory / "second.db"))
    with service() as running:
        run([task], running, directory)
        tasks = task, {**task, "check_mode": True}, handed_over(directory, 10_000)
        return tuple(
            over_empty(lambda number, task=task: [task], running, directory) for task in tasks
        )


def fleet(directory: Path) -> tuple[float, float, float]:
    """Return the seconds of the role, all done, and of its plan, in excess of ansible-core alone,
    and of the latter.

    Alone means the same role with no-op tasks: ansible-core checks the variables and passes list
    and result.
    """
    machines = [{"name": f"vm-{number}", "attributes": ATTRIBUTES} for number in range(10_000)]
    variables = {"fleet_virtual_machines": machines, "fleet_ledger": str(directory / "fleet.db")}
    (directory / "group_vars").mkdir()
    (directory / "group_vars/all.json").write_text(json.dumps(variables), "utf-8")
    role = {"ansible.builtin.import_role": {"name": "infrastructure.services.fleet"}}
    alone = {"ansible.builtin.import_role": {"name": str(_without_modules(directory))}}
    with service() as running:
        run([role], running, directory, INFRASTRUCTURE_SERVICES_CONCURRENCY="100")
        tasks = role, {**role, "check_mode": True}, alone
        again, plan, core = (
            over_empty(lambda number, task=task: [task], running, directory) for task in tasks
        )
    shutil.rmtree(directory / "group_vars")
    return again - core, plan - core, core


def _without_modules(directory: Path) -> Path:
    """Return the location of the role with no-op tasks that return as much as its modules."""
    handed_over(directory, 10_000)
    (directory / "nothing.json").write_text("{}", "utf-8")
    role = Path(shutil.copytree(CHECKOUT / "roles/fleet", directory / "alone"))
    tasks = role / "tasks/main.yml"
    content = yaml.safe_load(tasks.read_text("utf-8"))
    returned = {
        f"infrastructure.services.{module}": str(directory / f"{result}.json")
        for module, result in (
            ("compute_virtual_machines", "result"),
            ("cassandra_application_roles", "nothing"),
        )
    }
    for task in _all_tasks(content):
        for module in task.keys() & returned.keys():
            task["handed_over"] = {**task.pop(module), "returned": returned[module]}
    tasks.write_text(yaml.safe_dump(content), "utf-8")
    return role


def _all_tasks(tasks: list[dict]) -> Iterator[dict]:
    """Yield tasks and blocks, and all that are in the blocks."""
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always"):
            yield from _all_tasks(task.get(part, []))


def memory(directory: Path) -> float:
    """Of the largest process, and at most as much again for its parent, in excess of an empty play;
    megabytes.
    """
    line = [sys.executable, __file__, "--memory"]
    peaks = [
        int(subprocess.run([*line, what], check=True, capture_output=True).stdout)
        for what in ("many", "empty")
    ]
    return (peaks[0] - peaks[1]) / 1e6


def limit_of_rate(directory: Path) -> tuple[float, float]:
    """Return throughput over the limit, and the share of refusals in percent."""
    with service(0.02, rate=50) as running:
        run([many(listed(directory, 1000), 64)], running, directory)
        counts = running.counts()
    return counts["201"] / counts["seconds"] / 50, 100 * counts.get("429", 0) / (
        counts["201"] + counts.get("429", 0)
    )


def limit_of_room(directory: Path) -> tuple[float, float]:
    """Return the unknown outcomes of a fixed 64 over ours, and our throughput over the best."""
    limits, machines = {"capacity": 32, "slow_above": 16}, listed(directory, 1000)
    with service(0.5, **limits) as running:
        run([{**many(machines, 64, max_unknown=0), "ignore_errors": True}], running, directory)
        ours = running.counts()
    with service(0.5, **limits) as running:
        run([many(machines, 28)], running, directory)
        best = running.counts()
    fixed = _fixed(64, 1000, limits)
    rates = [counts["201"] / counts["seconds"] for counts in (ours, best)]
    return fixed / max(1, ours.get("503", 0)), rates[0] / rates[1]


def _fixed(width: int, count: int, limits: dict) -> int:
    """Return how many of `count` creations are in doubt when `width` of them are always in flight."""

    def send(number: int) -> bool:
        body = json.dumps({"name": f"vm-{number}", "attributes": {}}).encode()
        asked = urllib.request.Request(
            f"{running.url}/vm", body, {"Content-Type": "application/json"}
        )
        try:
            urllib.request.urlopen(asked).close()
        except urllib.error.HTTPError as error:
            error.close()
            return error.code == 503
        return False

    with service(0.5, **limits) as running, ThreadPoolExecutor(width) as pool:
        return sum(pool.map(send, range(count)))


def dead_service(directory: Path) -> int:
    with service(0.05, dies_after=0) as running:
        task = many(listed(directory, 1000), 64, max_unknown=0)
        run([{**task, "ignore_errors": True}], running, directory)
        return running.counts()["503"]


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
    Row(against_async, (("50 of 1 s, 20 at once, async uri / ours", ">=", 4),)),
    Row(
        ten_thousand,
        (
            ("10000 that are done, seconds", "<=", 5),
            ("plan of 10000, seconds", "<=", 3),
            ("their list and result in ansible-core alone", "<=", math.inf),
        ),
    ),
    Row(
        fleet,
        (
            ("role fleet, 10000 that are done, over core alone", "<=", 5),
            ("role fleet, plan of 10000, over core alone", "<=", 3),
            ("role fleet in ansible-core alone, seconds", "<=", math.inf),
        ),
    ),
    Row(memory, (("10000, 100 at once, megabytes", "<=", 300),)),
    Row(
        limit_of_rate,
        (
            ("rate limit, throughput / limit", ">=", 0.9),
            ("rate limit, refusals in percent", "<=", 5),
        ),
    ),
    Row(
        limit_of_room,
        (("capacity 32, in doubt, fixed 64 / ours", ">=", 10), ("throughput / best", ">=", 0.8)),
    ),
    Row(dead_service, (("dead service, in doubt of 1000", "<=", 5),)),
)


def peak(what: str) -> None:
    """Print the peak memory in bytes of ansible-playbook and its worker together."""
    kilobyte = {**ATTRIBUTES, "operating_system": "x" * 900}
    with service(0.1) as running, tempfile.TemporaryDirectory() as scratch:
        machines = listed(Path(scratch), 10_000, attributes=kilobyte)
        task = many(machines, 100, asset_fields=None) if what == "many" else EMPTY
        environment = {**ENVIRONMENT, **access(running)}

        highest, ended = 0, threading.Event()

        def watch() -> None:
            nonlocal highest
            while not ended.wait(0.05):
                highest = max(highest, family(os.getpid()))

        watcher = threading.Thread(target=watch)
        watcher.start()
        play([task], 1, Path(scratch), **environment)
        ended.set()
        watcher.join()
        print(highest)


def family(pid: int) -> int:
    """Return the bytes of the ansible-playbook that a process started, and its workers; shared
    memory counts once.
    """
    total = 0
    for child in children(pid):
        try:
            line = Path(f"/proc/{child}/cmdline").read_text("utf-8")
            rollup = Path(f"/proc/{child}/smaps_rollup").read_text("utf-8").splitlines()[1:]
            sizes = dict(size.split(":") for size in rollup)
        except (OSError, ValueError):
            continue
        if "ansible-playbook" in line:
            total += int(sizes["Pss"].split()[0]) * 1024 + family(child)
    return total


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, path.read_text("utf-8").split())
    return found


def main() -> None:
    """Print a line for each number; exit with 1 when a bar does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="measure only work whose name contains this")
    parser.add_argument("--memory", choices=["many", "empty"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        peak(given.memory)
        return
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
