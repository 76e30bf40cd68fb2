"""Each file operation of a task fails once: the first, the second, ... At most one request, and the
next run knows.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ledger.entries import end_leases, put
from ledger.tasks import key
from ledger.test_crash import machines
from ledger.test_postgresql import ENTRY

pytestmark = pytest.mark.stress

# What may fail, and how.
CALLS = {
    "openat": ("EMFILE", "EIO", "ENOSPC", "EDQUOT"),
    "pread64": ("EIO",),
    "pwrite64": ("EIO", "ENOSPC", "EDQUOT"),
    "fdatasync": ("EIO", "ENOSPC", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT"),
    "ftruncate": ("EIO", "ENOSPC"),
    "fcntl": ("EIO",),
    "newfstatat": ("EIO", "EACCES"),
    "unlink": ("EIO",),
}
ALWAYS = ("openat", "pwrite64", "fdatasync")  # SQLite makes these calls in each version
MAY_BE_THERE = "it may be settled as absent"  # the intent of a task that sent nothing
ASKED_BY_PYTHON = "newfstatat"  # of any file, to import what it has not yet


@contextmanager
def traced(pid: int, log: Path, *options: str) -> Iterator[None]:
    """Attach strace to a process that waits for that, until the process ends."""
    line = ["strace", "-f", "-o", str(log), *options, "-p", str(pid)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as strace:
        assert "attached" in strace.stderr.readline()
        os.kill(pid, signal.SIGUSR1)
        yield
        strace.communicate()


def result_of(fork, log: Path, arguments: tuple, call: str, inject: str = "") -> dict:
    """Return the result of a process of which a call fails, as `inject` says."""
    named = arguments if call == ASKED_BY_PYTHON else ()
    ledgers = [argument for argument in named if str(argument).startswith("/")]
    files = [f"--trace-path={ledger}{suffix}" for ledger in ledgers for suffix in ("", "-journal")]
    with fork(*arguments) as process:
        assert process.wait() == "ready"
        injected = [f"--inject={call}:{inject}"] if inject else []
        with traced(process.pid, log, *files, f"--trace={call}", *injected):
            said = process.results()
    assert len(said) == 2, f"{call} {inject}: it ended without a result"
    return said[1]


def sweep(
    fork,
    tmp_path: Path,
    call: str,
    begin: Callable[[str], tuple],
    check: Callable[[str, dict], None],
) -> int:
    """Let the call fail, each time and in each way; return how often.

    `begin`: makes what a run needs, given its name, and returns what to fork; `check`: looks at its
    result.
    """
    log, rows = tmp_path / "strace", 0
    check("dry", result_of(fork, log, begin("dry"), call))
    count = len(re.findall(rf"\b{call}\(", log.read_text()))
    for error in CALLS[call]:
        for number in range(1, count + 1):
            name, rows = f"{error}-{number}".lower(), rows + 1
            check(name, result_of(fork, log, begin(name), call, f"error={error}:when={number}"))
    return rows


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["new", "existing"])
def test_a_creation(kind, call, tmp_path, fork, opened, service):
    def begin(name: str) -> tuple:
        location = str(tmp_path / f"{name}.db")
        if kind == "existing":
            put(opened(location), key(), ENTRY)
        return "swept", location, service.url, name

    def check(name: str, first: dict) -> None:
        assert first["outcome"] in ("not_sent", "accepted"), first
        location = str(tmp_path / f"{name}.db")
        if first["outcome"] != "not_sent" or MAY_BE_THERE in first["msg"]:
            end_leases(location)
        with fork("create", location, service.url, name) as process:
            again = process.result()
        ids = machines(service).get(name, [])
        assert len(ids) <= 1, (first, again)
        if ids and not first.get("failed"):
            assert (again["outcome"], again["asset"]["id"], again.get("failed")) == (
                "not_sent",
                ids[0],
                None,
            )
        elif first["outcome"] == "accepted":
            is_known = again["outcome"] == "not_sent" and again["asset"]["id"] == ids[0]
            assert is_known or (again["failed"] and again["outcome"] in ("unknown", "accepted")), (
                again
            )
        elif again.get(
            "failed"
        ):  # a commit that failed when it was done: nothing was sent, and nobody knows
            assert again["outcome"] == "unknown", again
            in_doubt.append(name)
        else:
            assert again["outcome"] == "accepted"

    in_doubt: list[str] = []
    assert sweep(fork, tmp_path, call, begin, check) or call not in ALWAYS
    assert (
        len(in_doubt) <= 4
    )  # when the directory is synced, or SQLite's locks are released, after the commit
