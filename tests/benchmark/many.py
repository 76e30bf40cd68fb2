"""Measure the plural modules against the ideal, loops and hosts, and what a ledger costs.

python tests/benchmark/many.py [--only WORD]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import trustme

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.checkout import CHECKOUT  # which also makes the collection importable

# isort: split
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    Change,
    Entry,
    Key,
    Write,
    stamped,
)
from benchmark.loops import ATTRIBUTES, MODULE, Server, access, holds, over, play, word
from support.ledgers import create, opened

BIN = Path(sys.executable).parent
INSTALLED = {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".build/collections")}
RESOURCE = "compute_virtual_machine"
ROUNDS = 3  # the median counts
EMPTY = {"ansible.builtin.debug": {"msg": "nothing"}}


def many(directory: Path, **options: object) -> dict:
    """A task that creates 1000 machines, 50 at once.

    A template reads them from a file: building them with filters would be ansible-core's cost.
    """
    path = directory / "machines.json"
    machines = [{"name": f"vm-{number}", "attributes": ATTRIBUTES} for number in range(1000)]
    path.write_text(json.dumps(machines), "utf-8")
    listed = f"{{{{ lookup('ansible.builtin.file', '{path}') | from_json }}}}"
    shared = {"virtual_machines": listed, "concurrency": 50, "asset_fields": ["id"]}
    return {f"{MODULE}s": {**shared, **options}}


def seconds_of(task: dict, server: Server, directory: Path) -> float:
    """Return the seconds of a task in an ansible-playbook of its own."""
    started = time.perf_counter()
    play([task], 1, directory, **access(server), **INSTALLED)
    return time.perf_counter() - started


def slow_service(directory: Path) -> tuple[float, ...]:
    """Return the ratios of the seconds, without and with a ledger, to the ideal."""
    with Server(0.5) as server:
        empty = seconds_of(EMPTY, server, directory)
        plain = seconds_of(many(directory), server, directory)
        kept = many(directory, ledger=create(str(directory / "slow.db"), server.url))
        return (plain - empty) / 10, (seconds_of(kept, server, directory) - empty) / 10


def tls(directory: Path) -> tuple[float, ...]:
    """Return the ratio of the seconds with TLS to those without."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    own = directory / "server.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(own)
    seconds = []
    for files in (), (own,):
        with Server(0.05, *files) as server:
            task = many(directory, ca_path=str(directory / "ca.pem"))
            seconds.append(seconds_of(task, server, directory))
            seconds[-1] -= seconds_of(EMPTY, server, directory)
    plain, with_tls = seconds
    return (with_tls / plain,)


def loop_with_ledger(directory: Path) -> tuple[float, ...]:
    """Return the ratio of a loop of 1000 with the ledger to one without; each round creates
    different machines.
    """
    tasks = []
    location = str(directory / "loop.db")
    for number in range(ROUNDS + 1):
        for name, ledger in (("with", location), ("without", "none")):
            call = {
                "name": f"vm-{number}-{{{{ item }}}}",
                "attributes": ATTRIBUTES,
                "ledger": ledger,
            }
            tasks.append({"name": name, MODULE: call, **over(1000)})
    with Server() as server:
        create(location, server.url)
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
            ("1000 machines of 0.5 s, 50 at once / 10 s", "<=", 1.25),
            ("the same, with ledger / 10 s", "<=", 1.3),
        ),
    ),
    Row(tls, (("1000 machines of 0.05 s, 50 at once, TLS / none", "<=", 2.0),)),
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
