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
from collections.abc import Callable, Iterator
from itertools import count as counting
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
__import__("conftest")  # makes the collection importable
__import__("psycopg")  # once, before any process is forked
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ServicesError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import transport
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.postgresql import (
    PostgresDatabase,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.seen import Seen
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.sqlite import (
    SqliteDatabase,
)
from ledger.tasks import list_task, moved, task
from support.ledgers import HOME, open_at

# Calls at which a process dies: those that change the database, and the request.
CALLS = [
    (SqliteDatabase, "create"),
    (SqliteDatabase, "execute"),
    (PostgresDatabase, "execute"),
    (transport, "send_once"),
]


def create(location: str, url: str, name: str, number: int = 0, when: str = "") -> Iterator[dict]:
    """Create a machine; the process is killed `when` (before, after) it makes a call."""
    die_at(number, when)
    yield task(location, base_url=url, name=name, retries=0, timeout=10)


def create_all(
    location: str,
    url: str,
    names: list[str],
    number: int = 0,
    when: str = "",
    approved: dict | None = None,
    rows: dict | None = None,
) -> Iterator[dict]:
    """Create a list of machines, three at once; `approved`, `rows`: as of `list_task`."""
    die_at(number, when)
    options = {"base_url": url, "retries": 0, "timeout": 10, "concurrency": 3}
    yield list_task(location, names, approved=approved, rows=rows, **options)


def loop(location: str, url: str, count: int) -> Iterator[dict]:
    """Create web0, web1, ... as a loop does, with one ledger."""
    ledgers: list[Ledger] = []

    def opens(location: str, base_url: str) -> Ledger:
        if not ledgers:
            ledgers.append(open_at(location, base_url))
            ledgers[0].close = lambda: None
        ledgers[0].refresh()
        return ledgers[0]

    for number in range(count):
        yield task(location, base_url=url, name=f"web{number}", retries=0, opens=opens)


def move(source: str, target: str, number: int = 0, when: str = "") -> Iterator[dict]:
    """Move a ledger; the process is killed `when` it makes a call."""
    die_at(number, when)
    try:
        yield moved(source, target)
    except ServicesError as error:
        yield Result.of_error(error).as_ansible()


def limited(location: str, url: str, mode: str, when: str = "") -> Iterator[dict]:
    """Run (`mode`: run or check) a task, whose ledger is not created, and whose files may not grow
    from `before` it or from `after` its answer.
    """

    def opens(location: str, base_url: str) -> Ledger:
        return open_ledger(location, Seen(HOME, "run-of-the-tests"), base_url, writes=mode == "run")

    real = transport.send_once

    def send_once(*arguments, **options):
        try:
            return real(*arguments, **options)
        finally:
            _fill()

    if when == "before":
        _fill()
    elif when == "after":
        transport.send_once = send_once
    yield task(location, base_url=url, check_mode=mode == "check", opens=opens)


def swept(location: str, url: str, name: str) -> Iterator[object]:
    """Create a machine, from when something is attached to this process that makes its file
    operations fail.
    """
    yield from _once_attached(lambda: task(location, base_url=url, name=name, retries=0))


def _once_attached(act: Callable[[], dict]) -> Iterator[object]:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    yield "ready"
    signal.sigwait([signal.SIGUSR1])
    yield act()


def _fill() -> None:
    """Stop files from being written, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def die_at(number: int, when: str) -> None:
    """Kill this process `before` or `after` it makes one of CALLS for the given time."""
    made = counting(1)

    def around(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def dying(*arguments, **options):
            if name == "execute" and not any(arguments[2:]):  # it reads
                return real(*arguments, **options)
            is_last = next(made) == number
            if is_last and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*arguments, **options)
            if is_last:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        setattr(owner, name, dying)

    for owner, name in CALLS if number else ():
        around(owner, name)


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
