# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests do in processes of their own: `python processes.py SOCKET` forks one for each
connection.

Forked, since starting Python and importing ansible-core takes a hundred times as long as most of
these tasks; from a process of its own, since a process with threads cannot fork safely. A
connection sends one line of JSON, the name of a function below and its arguments, and receives the
pid of the process, then what the function yields, a line each.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
__import__("psycopg")  # once, before any process is forked
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    Key,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.moving import (
    move_ledger,
    open_source,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    assets_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.report import (
    AboutList,
    Report,
)
from ledger.tasks import task
from support import CREATE, RESOURCES, locks


def hold(location: str, name: str) -> Iterator[object]:
    """Hold a key of a ledger until the process is killed."""
    with locks.hold(open_ledger(location), Key("https://s", "compute_virtual_machine", name)):
        yield time.monotonic()
        signal.pause()


def create(location: str, url: str, name: str, step: str = "") -> Iterator[dict]:
    """Create a machine; with `step` the process is killed there."""
    if step:
        KILLED_AT[step]()
    yield task(location, base_url=url, name=name, retries=0)


def loop(location: str, url: str, count: int) -> Iterator[dict]:
    """Create web0, web1, ... with one ledger, as a loop does."""
    try:
        ledger = open_ledger(location)
    except LedgerError:
        ledger = location  # each task reports why
    for number in range(count):
        yield task(ledger, base_url=url, name=f"web{number}", retries=0)


def write_half(location: str) -> Iterator[bool]:
    """Write half of a transaction into the file of an SQLite ledger, until the process is killed."""
    ledger = open_ledger(location)
    ledger.database.execute("PRAGMA cache_size = 1")  # pages are written before the commit
    ledger.database.execute("BEGIN IMMEDIATE")
    ledger.database.execute("DELETE FROM infrastructure_services_entry WHERE name < 'web200'")
    ledger.database.execute(
        "INSERT INTO infrastructure_services_entry SELECT base_url, resource, name || 'copy', state, sent, asset,"
        ' began_at, changed_at, "by", run, trace_id, revision FROM infrastructure_services_entry'
    )
    yield True
    signal.pause()


def limited(location: str, url: str, mode: str, when: str = "") -> Iterator[dict]:
    """Run (`mode`: run or check) a task whose files may not grow from `before` it or from `after`
    its answer.
    """
    real = Transport.send_once

    def send_once(*arguments, **options):
        try:
            return real(*arguments, **options)
        finally:
            _fill()

    if when == "before":
        _fill()
    elif when == "after":
        Transport.send_once = send_once
    yield task(location, base_url=url, check_mode=mode == "check")


def swept(location: str, url: str, name: str) -> Iterator[object]:
    """Create a machine, from when something is attached to this process that makes its file
    operations fail.
    """
    yield from _once_attached(lambda: task(location, base_url=url, name=name, retries=0))


def swept_move(source: str, target: str) -> Iterator[object]:
    """Move a ledger, in the same way."""

    def move() -> dict:
        try:
            with closing(open_source(source, False)) as old:
                return move_ledger(old, partial(open_ledger, target, moving=True), check_mode=False)
        except LedgerError as error:
            return Result.of_error(error).as_ansible()

    yield from _once_attached(move)


def swept_report(path: str, names: list[str]) -> Iterator[object]:
    """Write a report, in the same way."""

    def write() -> dict:
        items = tuple(
            Result(item=name, changed=True, outcome="accepted", asset={"id": name})
            for name in names
        )
        operation = RESOURCES[CREATE].operation
        try:
            report = Report(path, "", "run", "https://service", is_plan=False)
            assets = assets_of(operation, Result(results=items))
            problem = report.add_list(operation, assets, AboutList())
            return dict(outcome="accepted", problem=problem)
        except InvalidInput as error:
            return Result.of_error(error).as_ansible()

    yield from _once_attached(write)


def _once_attached(act: Callable[[], dict]) -> Iterator[object]:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    yield "ready"
    signal.sigwait([signal.SIGUSR1])
    yield act()


def _fill() -> None:
    """Stop files from being written, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _die(*_arguments, **_options) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _around(owner: type, name: str, when: str) -> None:
    """Kill the process before or after a call."""
    real = getattr(owner, name)

    def dying(*arguments, **options):
        if when == "after":
            real(*arguments, **options)
        _die()

    setattr(owner, name, dying)


KILLED_AT = {
    "before the intent": lambda: _around(Ledger, "begin", "before"),
    "after the intent": lambda: _around(Ledger, "begin", "after"),
    "while the service works": lambda: None,  # by the test
    "after the answer": lambda: _around(Transport, "send_once", "after"),
    "before the record": lambda: _around(Ledger, "finish", "before"),
    "after the record": lambda: _around(Ledger, "finish", "after"),
}


def serve(path: str) -> None:
    """Fork a process for each connection, until standard input ends, as it does when the tests'
    process dies.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(128)
        print("ready", flush=True)
        while listening in select.select([listening, sys.stdin], [], [])[0]:
            connection, _address = listening.accept()
            if not os.fork():
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                perform(connection)
            connection.close()


def perform(connection: socket.socket) -> None:
    """Do what the connection says, and exit."""
    with connection, connection.makefile("r") as asked, connection.makefile("w") as told:
        print(os.getpid(), file=told, flush=True)
        name, arguments = json.loads(asked.readline())
        for said in globals()[name](*arguments):
            print(json.dumps(said), file=told, flush=True)
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
