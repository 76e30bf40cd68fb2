# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Create the same machines in each way that Ansible has, and in a bare thread pool of requests, in
one run; print a table.

python tests/benchmark/peers.py [--machines N] [--at-once C] [--seconds L]

A service that takes L seconds for an answer, asked for C at once, cannot create N machines in less
than N / C x L. The seconds are those in excess of an empty play; the loop is measured with C
machines, and its seconds are multiplied.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmark.loops import access, over, uri
from benchmark.many import EMPTY, ROUNDS, WAIT, Running, listed, many, over_empty, run, service

# Of our seconds over those of the limit. 1.14 is the ramp (_list/congestion); the rest is the start.
MOST = 1.25


def thread_pool(running: Running, number: int, at_once: int) -> float:
    """Return the seconds of as many threads, each with a session of its own, without Ansible."""
    sessions = [requests.Session() for _number in range(at_once)]
    url = f"{access(running)['INFRASTRUCTURE_SERVICES_BASE_URL']}/api/v1/services/compute"
    url += "/virtual_machines"

    def send(each: int) -> None:
        for name in range(each, number, at_once):
            answer = sessions[each].post(url, json={"name": f"vm-{name}"}, timeout=60)
            assert answer.status_code == 201, answer.status_code

    started = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(send, range(at_once)))
    return time.perf_counter() - started


def measure(number: int, at_once: int, directory: Path, running: Running) -> dict[str, float]:
    """Return the seconds of each way, for ours the median of ROUNDS."""
    machines = listed(directory, number)
    jobs = {"register": "jobs", "async": 600, "poll": 0}

    def above(task: Callable[[int], dict], rounds: int = ROUNDS) -> float:
        return over_empty(lambda each: [task(each)], running, directory, rounds)

    def with_ledger(each: int) -> dict:
        return many(machines, at_once, ledger=str(directory / f"{each}.db"))

    by_host = [uri("vm-{{ inventory_hostname }}")]
    empty = run([EMPTY], running, directory, number, ANSIBLE_FORKS=str(at_once)).seconds
    forks = run(by_host, running, directory, number, ANSIBLE_FORKS=str(at_once)).seconds
    started = [uri("vm-{{ item }}", **over(number), **jobs), WAIT]
    loop = above(lambda _each: uri("vm-{{ item }}", **over(at_once)), 1)
    return {
        "a thread pool of requests, without Ansible": thread_pool(running, number, at_once),
        "compute_virtual_machines": above(lambda _each: many(machines, at_once)),
        "compute_virtual_machines with a ledger": above(with_ledger),
        "uri with forks, a host for each": forks - empty,
        "uri with async and poll: 0": over_empty(lambda _each: started, running, directory, 1),
        "uri in a loop": loop * number / at_once,
    }


def main() -> int:
    """Return 1 if ours takes too long."""
    parser = argparse.ArgumentParser(description="Compare ways to create machines.")
    parser.add_argument("--machines", type=int, default=1000, help="N (1000)")
    parser.add_argument("--at-once", type=int, default=50, help="C (50)")
    parser.add_argument("--seconds", type=float, default=0.5, help="L (0.5)")
    given = parser.parse_args()
    limit = given.machines / given.at_once * given.seconds
    with tempfile.TemporaryDirectory() as scratch, service(given.seconds) as running:
        found = measure(given.machines, given.at_once, Path(scratch), running)
    told = f"{given.machines:,} machines of {given.seconds} s, {given.at_once} at once"
    print(f"| {told} | seconds | of the limit |\n|---|---|---|")
    for way, seconds in {"limit: N / C x L": limit, **found}.items():
        print(f"| {way} | {seconds:.1f} | {seconds / limit:.2f} |")
    return int(found["compute_virtual_machines"] > MOST * limit)


if __name__ == "__main__":
    sys.exit(main())
