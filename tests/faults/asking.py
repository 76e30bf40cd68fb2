"""Run tasks against a service of generated answers, in a process of their own, whose memory can so
be measured.

    PYTHONPATH=tests python -m faults.asking URL GOOD FIRST AFTER

GOOD: the URL of a service, and of a token endpoint, that answers well.

One line of JSON for each task, and one with the peak of the memory at the end.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from support import CREATE, UPDATE, run_task
from support.lists import run_list

# isort: split
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)

from .generated import ACCESS_TOKEN, CLIENT_ID, CLIENT_SECRET, ECHO, TOKEN, forms_of

CLIENT = dict(client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
MACHINES = [{"name": f"web{number}"} for number in range(3)]  # of each list
WAYS = ("POST", "PUT", "token", "CONNECT", "list", "list token")
TIMEOUT = 60  # seconds for an attempt; no generated answer makes the client wait
LIMITS = dict(retries=1, timeout=TIMEOUT)


def way_of(number: int) -> str:
    """Return what the answer of this number is an answer to."""
    return WAYS[number % len(WAYS)]


def digest(asset: object) -> str:
    """Return a short text that two assets have in common that differ in their echoes at most."""
    if isinstance(asset, dict):
        asset = {name: asset[name] for name in asset if name not in (ECHO, "error_description")}
    return hashlib.sha256(json.dumps(asset, sort_keys=True).encode()).hexdigest()


def ask(url: str, good: str, number: int) -> dict:
    """Run the task or the list of a number and return its result."""
    here = f"{url}/n{number}"
    given = dict(CLIENT, access_token=ACCESS_TOKEN)
    fetched = dict(CLIENT, access_token=None)
    way = way_of(number)
    if way.startswith("list"):
        options = dict(virtual_machines=MACHINES, concurrency=2, max_unknown=0, **LIMITS)
        if way == "list":
            return run_list(VIRTUAL_MACHINES, dict(options, base_url=here, **given))
        fetched = dict(CLIENT, base_url=good, auth_url=f"{here}/token")
        return run_list(VIRTUAL_MACHINES, {**options, **fetched})
    resource, options = {
        "POST": (CREATE, dict(base_url=here, **given)),
        "PUT": (UPDATE, dict(base_url=here, auth_url=f"{good}/token", **fetched)),
        "token": (CREATE, dict(base_url=good, auth_url=f"{here}/token", **fetched)),
        "CONNECT": (CREATE, dict(base_url=f"https://n{number}.example", **given)),
    }[way]
    return run_task(resource, **LIMITS, **options)


def texts_in(value: object) -> Iterator[str]:
    """Return all texts in a result."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, str):
        yield value


def leaks_in(result: dict, way: str) -> list[str]:
    """Return the credentials of the task that are in its result, in any form."""
    forms = forms_of(CLIENT_SECRET)
    if "token" in way:
        forms.append(TOKEN)
    elif way != "PUT":
        forms += forms_of(ACCESS_TOKEN)
    text = "\n".join(texts_in(result))
    return [form for form in forms if form in text]


def told(url: str, good: str, number: int) -> dict:
    """Return what the test compares of a task, and of each item of a list."""
    started = time.process_time()
    result = ask(url, good, number)
    return dict(
        number=number,
        leaks=leaks_in(result, way_of(number)),
        seconds=time.process_time() - started,
        items=[told_of(each) for each in result.get("results", ())],
        **told_of(result),
    )


def told_of(result: dict) -> dict:
    """Return what the test compares of the result of a task or of an item."""
    return dict(
        outcome=result.get("outcome"),
        failed=result.get("failed", False),
        skipped=result.get("skipped", False),
        changed=result["changed"],
        asset=digest(result.get("asset")),
        msg=result.get("msg", "ok"),
    )


def main(url: str, good: str, first: str, after: str) -> None:
    """Run the tasks; an unexpected exception ends the process."""
    os.environ["HTTPS_PROXY"] = url
    gc.freeze()
    for number in range(int(first), int(after)):
        print(number, file=sys.stderr)
        print(json.dumps(told(url, good, number)), flush=True)
        gc.collect()  # what a list leaves in cycles: its process ends, and this one goes on
    peak = Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]
    print(json.dumps({"peak": int(peak)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
