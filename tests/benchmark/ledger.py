"""Measure what the ledger costs: in a loop, as an inventory, as it grows, and shared by several
ansible-runners.

python tests/benchmark/ledger.py [--only WORD]   `--only shards`: several runners share a
PostgreSQL; this has no bar
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
CHECKOUT = __import__(
    "conftest"
).CHECKOUT  # which also makes the checkout importable as the collection
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.database import Write
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    Change,
    Entry,
    Key,
    stamped,
)
from benchmark.loops import ATTRIBUTES, MODULE, Server, access, over, play
from support.ledgers import opened

BIN = Path(sys.executable).parent
ROUNDS = 3  # the median counts
RESOURCE = "compute_virtual_machine"
LOOP_BAR, INVENTORY_BAR = 2.0, 0.7


def environment() -> dict[str, str]:
    """The environment with the collection as `make artifact` installed it."""
    return {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections")}


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


def fill(location: str, count: int) -> None:
    """Record machines as tasks would, in one transaction."""
    assets = [recorded(f"vm{number:06}") for number in range(count)]
    with opened(location, "https://s") as ledger:
        changes = [
            Change(Write.EDIT, Key(RESOURCE, asset["name"]), None, Entry(DONE, asset, asset))
            for asset in assets
        ]
        ledger.write([stamped(change) for change in changes])


def loading(directory: Path) -> tuple[float, float]:
    """Return the seconds that ansible-inventory takes to load 10,000 hosts from a ledger, and from
    a static inventory.

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
    return tuple(
        statistics.median(once(directory / name) for dummy in range(ROUNDS)) for name in files
    )


def once(inventory: Path) -> float:
    """Return the seconds of one start."""
    started = time.perf_counter()
    line = [BIN / "ansible-inventory", "-i", inventory, "--host", "vm000001"]
    subprocess.run(line, stdout=subprocess.DEVNULL, check=True, env={**os.environ, **environment()})
    return time.perf_counter() - started


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
            "inventory of 10,000, ledger : static JSON": partial(
                ratio, INVENTORY_BAR, partial(loading, directory)
            ),
        }
        print(f"{'work':44}{'ours, s':>12}{'theirs, s':>12}{'':>8}   bar")
        held = [measure(what) for what, measure in measurements.items() if only in what]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
