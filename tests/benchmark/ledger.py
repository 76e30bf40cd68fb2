"""Measure what the ledger costs: in a loop, and as an inventory.

python tests/benchmark/ledger.py [--only WORD]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
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
from benchmark.loops import ATTRIBUTES, MODULE, Server, access, holds, over, play, word
from support.ledgers import opened

BIN = Path(sys.executable).parent
ROUNDS = 3  # the median counts
RESOURCE = "compute_virtual_machine"


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


MEASURED = {
    "loop of 1000, SQLite ledger : none": (loop, 2.0),
    "inventory of 10,000, ledger : static JSON": (loading, 0.7),
}


def main() -> None:
    """Print a line for each measurement; exit with 1 when a bar does not hold."""
    only, held = word(__doc__), []
    with tempfile.TemporaryDirectory() as scratch:
        for what, (measure, limit) in MEASURED.items():
            if only in what:
                ours, theirs = measure(Path(scratch))
                held.append(holds(what, ours / theirs, "<=", limit, ours, theirs))
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
