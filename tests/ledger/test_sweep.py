"""Each file operation of a task fails once: the first, the second, ... At most one request, and the
next run knows.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ledger.entries import end_leases, put, states
from ledger.swept import SWEPT
from ledger.tasks import key
from ledger.test_crash import machines
from ledger.test_move import ENTRY, moved, states_of
from support.running import BIN, Run

pytestmark = pytest.mark.stress

# What may fail, and how.
CALLS = {
    "openat": ("EMFILE", "EIO", "ENOSPC", "EDQUOT"),
    "pread64": ("EIO",),
    "pwrite64": ("EIO", "ENOSPC", "EDQUOT"),
    "write": ("EIO", "ENOSPC", "EDQUOT"),
    "fdatasync": ("EIO", "ENOSPC", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT"),
    "ftruncate": ("EIO", "ENOSPC"),
    "fcntl": ("EIO",),
    "newfstatat": ("EIO", "EACCES"),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "renameat": ("EIO", "ENOSPC", "EDQUOT"),
}
ASKED_BY_PYTHON = "newfstatat"  # of any file, to import what it has not yet
OF_LEDGER = tuple(call for call in CALLS if call not in ("write", "unlinkat", "renameat"))
OF_PLAYBOOK = {"fdatasync": "EIO", "pwrite64": "ENOSPC", "renameat": "EIO"}
ENDS_OF_FILES = ("db", "db-journal", "json", "html", "xml")
LIST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: [{{name: {name}-0}}, {{name: {name}-1}}, {{name: {name}-2}}]
        ledger: '{{{{ playbook_dir }}}}/{name}.db'
        report: {name}.json
        max_unknown: 0
        retries: 0
"""


@contextmanager
def traced(pid: int, log: Path, *options: str) -> Iterator[None]:
    """Attach strace to a process that waits for that, until the process ends."""
    line = ["strace", "-f", "-o", str(log), *options, "-p", str(pid)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as strace:
        assert "attached" in strace.stderr.readline()
        os.kill(pid, signal.SIGUSR1)
        yield
        strace.communicate()


def require_counted(what: str, call: str, count: int) -> None:
    """Raise AssertionError unless about as many calls failed as docs/reliability.md says, none if
    that says none.
    """
    print("SWEPT", what, call, count)
    known = SWEPT[what].get(call, 0)
    assert known / 2 <= count <= known * 2, "tests/ledger/swept.py says how many there are"


def result_of(fork, log: Path, arguments: tuple, call: str, inject: str = "") -> dict:
    """Return the result of a process of which a call fails, as `inject` says."""
    ledgers = [
        argument
        for argument in arguments
        if call == ASKED_BY_PYTHON and str(argument).startswith("/")
    ]
    files = [f"--trace-path={ledger}{suffix}" for ledger in ledgers for suffix in ("", "-journal")]
    with fork(*arguments) as process:
        assert process.wait() == "ready"
        with traced(
            process.pid,
            log,
            *files,
            f"--trace={call}",
            *([f"--inject={call}:{inject}"] if inject else []),
        ):
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


@pytest.mark.parametrize("call", OF_LEDGER)
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
        if os.path.exists(location) and first["outcome"] != "not_sent":
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
    require_counted(f"a creation, {kind} ledger", call, sweep(fork, tmp_path, call, begin, check))
    assert (
        len(in_doubt) <= 4
    )  # when the directory is synced, or SQLite's locks are released, after the commit


@pytest.mark.parametrize("call", OF_LEDGER)
def test_a_move(call, tmp_path, fork, opened):
    def places(name: str) -> tuple[str, str]:
        return str(tmp_path / f"{name}.db"), str(tmp_path / f"{name}-new.db")

    def begin(name: str) -> tuple:
        ledger = opened(places(name)[0])
        for number in range(3):
            put(ledger, key(f"web{number}"), ENTRY)
        ledger.close()
        return "swept_move", *places(name)

    def check(name: str, first: dict) -> None:
        assert first["outcome"] == "not_sent"
        assert states_of(*places(name)).count("in use") <= 1, first
        moved(*places(name))
        assert states_of(*places(name)) == ["moved", "in use"]
        assert len(states(opened(places(name)[1]))) == 3

    require_counted("a move", call, sweep(fork, tmp_path, call, begin, check))


@pytest.mark.parametrize("call", OF_PLAYBOOK)
def test_a_list_of_a_playbook_with_a_report(call, ansible_once, service):
    """As users run it: the calls on the files of the ledger and of the report, in whichever process
    they are.
    """
    log = ansible_once.directory / "strace"

    def ran(name: str, inject: str) -> Run:
        files = [
            ansible_once.directory / f"{name}.{end}" for end in ENDS_OF_FILES if call != "renameat"
        ]  # ours are all
        (ansible_once.directory / "playbook.yml").write_text(LIST.format(name=name))
        options = [
            "-f",
            "--seccomp-bpf",
            "-o",
            log,
            *(f"--trace-path={file}" for file in files),
            f"--trace={call}",
        ]
        line = [
            *options,
            *([f"--inject={call}:{inject}"] if inject else []),
            BIN / "ansible-playbook",
            "playbook.yml",
        ]
        return ansible_once.command(shutil.which("strace"), *map(str, line))

    def check(name: str, first: Run) -> None:
        assert "Traceback" not in first.output, first.output
        (result,) = [line["result"] for line in first.results]
        again = ran(name, "")
        there = machines(service)
        assert all(len(there.get(f"{name}-{number}", [])) <= 1 for number in range(3)), (
            first.output,
            again.output,
        )
        assert len(again.results) == 1, again.output
        outcomes = [each["outcome"] for each in again.results[0]["result"]["results"]]
        if not result.get("failed"):
            assert outcomes == ["not_sent"] * 3

    check("dry", ran("dry", ""))
    ran("counted", "")
    count = len(re.findall(rf"\b{call}\(", log.read_text()))
    for number in range(1, count + 1):
        check(f"run-{number}", ran(f"run-{number}", f"error={OF_PLAYBOOK[call]}:when={number}"))
    require_counted("a list of a playbook", call, count)
