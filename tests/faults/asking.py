# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run tasks against a service of generated answers, in a process of their own, whose memory can so
be measured.

    PYTHONPATH=tests python -m faults.asking URL GOOD FIRST AFTER

GOOD: the URL of a service, and of a token endpoint, that answers well.

One line of JSON for each task, and one with the peak of the memory at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from support import CREATE, UPDATE, run_task

from .lab import CLIENT

WAYS = ("POST", "PUT", "token", "CONNECT")
TIMEOUT = 60  # seconds for an attempt; no generated answer makes the client wait


def way_of(number: int) -> str:
    """Return what the answer of this number is an answer to."""
    return WAYS[number % len(WAYS)]


def digest(asset: object) -> str:
    """Return a short text that two equal assets have in common."""
    return hashlib.sha256(json.dumps(asset, sort_keys=True).encode()).hexdigest()


def ask(url: str, good: str, number: int) -> dict:
    """Run the task of a number and return its result."""
    here = f"{url}/n{number}"
    fetched = dict(CLIENT, access_token=None)
    resource, options = {
        "POST": (CREATE, dict(base_url=here)),
        "PUT": (UPDATE, dict(base_url=here, auth_url=f"{good}/token", **fetched)),
        "token": (CREATE, dict(base_url=good, auth_url=f"{here}/token", **fetched)),
        "CONNECT": (CREATE, dict(base_url=f"https://n{number}.example")),
    }[way_of(number)]
    return run_task(resource, retries=1, timeout=TIMEOUT, **options)


def told(url: str, good: str, number: int) -> dict:
    """Return what the test compares of a task."""
    started = time.process_time()
    result = ask(url, good, number)
    return dict(
        number=number,
        outcome=result.get("outcome"),
        failed=result.get("failed", False),
        changed=result["changed"],
        asset=digest(result.get("asset")),
        msg=result.get("msg", "ok"),
        seconds=time.process_time() - started,
    )


def main(url: str, good: str, first: str, after: str) -> None:
    """Run the tasks; an unexpected exception ends the process."""
    os.environ["HTTPS_PROXY"] = url
    for number in range(int(first), int(after)):
        print(number, file=sys.stderr)
        print(json.dumps(told(url, good, number)), flush=True)
    peak = Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]
    print(json.dumps({"peak": int(peak)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
