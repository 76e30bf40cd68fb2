# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills tasks and repeats them: `python crasher.py LOCATION URL COUNT SEED [STEP]`. One line of JSON per key.

Each task is a process group, killed as a whole: at a random moment, or at a step. This process is single-threaded, so
that it can fork tasks without start-up costs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import Transport
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from ledger.tasks import task

LONGEST = 30.0  # seconds after which a task counts as hung


def die(*_arguments, **_options) -> None:
    os.killpg(0, signal.SIGKILL)


def around(owner: type, name: str, when: str) -> None:
    """Kill the process group before or after a call."""
    real = getattr(owner, name)

    def dying(*arguments, **options):
        if when == "before":
            die()
        real(*arguments, **options)
        die()

    setattr(owner, name, dying)


def while_it_waits() -> None:
    """Kill the process group half a second after a request starts: long before a slow service answers."""
    real = Transport.send

    def dying(*arguments, **options):
        threading.Timer(0.5, die).start()
        return real(*arguments, **options)

    Transport.send = dying


# Where a task is killed.
STEPS = {
    "before the intent": lambda: around(Ledger, "begin", "before"),
    "after the intent": lambda: around(Ledger, "begin", "after"),
    "while the service works": while_it_waits,
    "after the answer": lambda: around(Transport, "send", "after"),
    "before the record": lambda: around(Ledger, "finish", "before"),
    "after the record": lambda: around(Ledger, "finish", "after"),
}


def fork(location: str, url: str, name: str, prepare=lambda: None) -> tuple[int, int]:
    """Start a task in a process group of its own; return its pid and the descriptor to read its result from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.setsid()
    os.close(reading)
    prepare()
    result = task(location, base_url=url, name=name, retries=0)
    os.write(writing, json.dumps(result).encode())
    os._exit(0)


def ended(child: int, reading: int, kill_after: float = LONGEST) -> dict:
    """Wait for a task, killing its group when its time is up, and return its result; empty if it had none."""
    deadline = time.monotonic() + kill_after
    while (gone := os.waitpid(child, os.WNOHANG)[0]) == 0 and time.monotonic() < deadline:
        time.sleep(0.0005)
    if not gone:
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:  # its process group does not exist yet
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    return json.loads(text) if text else {}


def measured(location: str, url: str, seed: str) -> float:
    """Return the duration in seconds of a task that is not killed."""
    started = time.monotonic()
    ended(*fork(location, url, f"{seed}-measure"))
    return time.monotonic() - started


def main(location: str, url: str, count: str, seed: str, step: str = "") -> None:
    chance = random.Random(seed)
    whole = 0.0 if step else measured(location, url, seed)
    for number in range(int(count)):
        name = f"{seed}-{number}"
        moment = LONGEST if step else whole * chance.uniform(0, 1.2)
        crashed = ended(*fork(location, url, name, STEPS[step] if step else lambda: None), moment)
        again = ended(*fork(location, url, name))
        print(json.dumps({"name": name, "crashed": not crashed, "again": again}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
