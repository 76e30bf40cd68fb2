# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Create a fleet by the slices of a job, as AWX runs them: ansible-runners on one PostgreSQL
ledger, one killed.

python tests/benchmark/slices.py [--machines 10000] [--slices 4]   prints figures
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)
import psycopg
from benchmark.ledger import BIN, environment, postgres
from many.service import Service

CONCURRENCY = 25  # of each slice
STATES = "SELECT state, count(*) FROM infrastructure_services_entry GROUP BY state"


def start(
    own: Path, number: int, slices: int, machines: int, variables: dict[str, str]
) -> subprocess.Popen:
    """Start the runner of one slice."""
    hosts = {
        f"vm{host:06}": {"virtual_machine_attributes": {"cpu": 4}}
        for host in range(number, machines, slices)
    }
    for name, content in {
        "inventory/fleet.json": json.dumps({"fleet": {"hosts": hosts}}),
        "env/envvars": json.dumps(variables),
        "env/cmdline": f"--forks {CONCURRENCY}",
        "project/site.yml": "- import_playbook: infrastructure.services.create_fleet\n",
    }.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(content, "utf-8")
    line = [BIN / "ansible-runner", "run", own, "--playbook", "site.yml"]
    with (own / "said").open("a") as said:
        return subprocess.Popen(line, env={**os.environ, **environment()}, stdout=said)


def kill(own: Path) -> None:
    """Kill all processes of one slice at once, as a node that goes down does."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(own).encode() in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


def largest_result(own: Path) -> int:
    """Return the characters of the largest result of a module that ansible-runner kept."""
    events = (
        json.loads(path.read_text("utf-8")) for path in own.glob("artifacts/*/job_events/*.json")
    )
    return max(len(str(event.get("event_data", {}).get("res", ""))) for event in events)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--slices", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, postgres() as location, Service() as service:
        service.seconds = 0.05
        variables = {
            **environment(),
            "INFRASTRUCTURE_SERVICES_LEDGER": location,
            "INFRASTRUCTURE_SERVICES_BASE_URL": service.url,
            "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": "token-of-the-benchmark",
        }
        for name in ("first", "again"):
            began, owns = (
                time.perf_counter(),
                [Path(directory, name, str(each)) for each in range(asked.slices)],
            )
            running = [
                start(own, each, asked.slices, asked.machines, variables)
                for each, own in enumerate(owns)
            ]
            while name == "first" and len(service.created) < asked.machines / 2:
                time.sleep(0.05)
            if name == "first":
                kill(owns[0])
            statuses = [process.wait() for process in running]
            with psycopg.connect(location) as connection:
                states = dict(connection.execute(STATES).fetchall())
            print(
                f"{name}: {time.perf_counter() - began:.0f} s, statuses {statuses}, entries {states}, created"
                f" {len(service.created):,}, twice {sum(times > 1 for times in Counter(service.created).values())},"
                f" largest result {max(map(largest_result, owns)):,} characters",
                flush=True,
            )
    print(
        f"largest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
