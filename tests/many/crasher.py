"""Kills runs of a list and repeats them: `python crasher.py LEDGER URL ROUNDS SEED`. One line of
JSON per round.

Each run is a separate process, killed at a random moment. This process is single-threaded, so that
it can fork them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from support.ledgers import end_leases
from support.lists import run_list

COUNT, AT_ONCE = 60, 16
LONGEST = 60.0  # seconds after which a run counts as hung


def run(
    location: str, url: str, names: list[str], at_once: int = AT_ONCE, watch=str, **options
) -> dict:
    """Return the result of a list; `watch`: returns why to stop now, empty to go on."""
    options = {"base_url": url, "concurrency": at_once, "max_unknown": 0, **options}
    options["virtual_machines"] = [{"name": name} for name in names]
    return run_list(
        VIRTUAL_MACHINES,
        options,
        location=location,
        watch=watch,
    )


def forked(location: str, url: str, names: list[str], kill_after: float = LONGEST) -> dict:
    """Run a list in a process of its own; return its result, or an empty one if it was killed
    first.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        result = run(location, url, names)
        with os.fdopen(writing, "w", encoding="utf-8") as file:
            json.dump(
                [[item["item"], item["outcome"], item["failed"]] for item in result["results"]],
                file,
            )
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + kill_after
    while (gone := os.waitpid(child, os.WNOHANG)[0]) == 0 and time.monotonic() < deadline:
        time.sleep(0.0005)
    if not gone:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reading, encoding="utf-8") as file:
        text = file.read()
    return json.loads(text) if text else []


def measured(location: str, url: str, prefix: str) -> float:
    """Return the seconds that a run takes which nobody kills."""
    started = time.monotonic()
    forked(location, url, [f"{prefix}-{number}" for number in range(COUNT)])
    return time.monotonic() - started


def main(location: str, url: str, rounds: str, seed: str) -> None:
    chance = random.Random(seed)
    whole = min(measured(location, url, f"{seed}-measure-{number}") for number in range(2))
    for number in range(int(rounds)):
        names = [f"{seed}-{number}-{index}" for index in range(COUNT)]
        forked(location, url, names, chance.uniform(0, 1.1 * whole))
        end_leases(location)
        print(json.dumps(forked(location, url, names)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
