# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
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
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
)
from ledger.entries import put
from ledger.swept import SWEPT
from ledger.tasks import key, task
from ledger.test_crash import machines
from ledger.test_move import ENTRY, KEY, content, move, usable
from support.databases import schema_in
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
    "fcntl": ("EIO", "ENOLCK"),
    "newfstatat": ("EIO", "EACCES"),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "renameat": ("EIO", "ENOSPC", "EDQUOT"),
}
ASKED_BY_PYTHON = "newfstatat"  # of any file, to import what it has not yet
OF_LEDGER = tuple(call for call in CALLS if call not in ("write", "unlinkat", "renameat"))
OF_REPORT = ("openat", "write", "unlinkat", "renameat")
OF_PLAYBOOK = {"fdatasync": "EIO", "pwrite64": "ENOSPC", "renameat": "EIO"}
ENDS_OF_FILES = ("db", "db-journal", "db.lock", "json", "html", "xml")
LIST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machines:
        virtual_machines: [{{name: {name}-0}}, {{name: {name}-1}}, {{name: {name}-2}}]
        ledger: {name}.db
        report: {name}.json
        max_unknown: 0
        retries: 0
"""
KILLS = {
    "file": ("pwrite64", "fdatasync", "unlink"),
    "server": ("sendto",),
}  # what changes a ledger


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
    files = [
        f"--trace-path={ledger}{suffix}"
        for ledger in ledgers
        for suffix in ("", "-journal", ".lock")
    ]
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
            put(opened(location), KEY, ENTRY)
        return "swept", location, service.url, name

    def check(name: str, first: dict) -> None:
        assert first["outcome"] in ("not_sent", "accepted"), first
        location = str(tmp_path / f"{name}.db")
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
            put(ledger, KEY._replace(name=f"web{number}"), ENTRY)
        ledger.close()
        return "swept_move", *places(name)

    def check(name: str, first: dict) -> None:
        assert first["outcome"] == "not_sent"
        assert usable(*places(name)) in ([True, False], [False, True], [False, False]), first
        move(*places(name))
        assert usable(*places(name)) == [False, True]
        assert len(content(places(name)[1])[0]) == 3

    require_counted("a move", call, sweep(fork, tmp_path, call, begin, check))


@pytest.mark.parametrize(
    ("kinds", "call"),
    [
        (f"{source} to {target}", call)
        for source, target in product(KILLS, repeat=2)
        for call in sorted({*KILLS[source], *KILLS[target]})
    ],
)
def test_a_move_that_is_killed_at_a_call_is_completed_and_never_can_both_be_used(
    kinds, call, tmp_path, request, fork, opened, service
):
    def place(kind: str, name: str) -> str:
        return (
            str(tmp_path / name)
            if kind == "file"
            else schema_in(request.getfixturevalue("postgres_server"))
        )

    number, was_killed = 0, True
    while was_killed:
        number += 1
        source, target = (
            place(kind, f"{number}{kind}{side}.db") for side, kind in enumerate(kinds.split(" to "))
        )
        for each in range(3):
            put(opened(source), key(service, f"web{each}"), ENTRY)
        before = content(source)
        with fork("swept_move", source, target) as process:
            assert process.wait() == "ready"
            inject = f"--inject={call}:signal=KILL:when={number}"
            with traced(process.pid, tmp_path / "strace", f"--trace={call}", inject):
                was_killed = len(process.results()) == 1
        now = usable(source, target)
        assert now != [True, True]
        of_move = (
            [source, target] if now[1] or is_marked(target) else [source]
        )  # before, the target is any new ledger
        late, known = (
            [
                task(location, base_url=service.url, name=name, retries=0)["outcome"]
                for location in of_move
            ]
            for name in (f"late-{kinds}-{call}-{number}", "web1")
        )
        assert late.count("accepted") == sum(now), late
        assert known == ["not_sent"] * len(of_move)
        move(source, target)
        assert usable(source, target) == [False, True]
        assert len(content(target)[0]) == len(before[0]) + sum(now)
    require_counted(f"a move from {kinds}, killed", call, number - 1)


def is_marked(location: str) -> bool:
    """Whether a ledger is there and says that it is moved, or being filled."""
    with closing(open_ledger(location, read_only=True, moving=True)) as ledger:
        return bool(ledger.mark().move)


@pytest.mark.parametrize("call", OF_REPORT)
def test_a_report(call, tmp_path, fork):
    def begin(name: str) -> tuple:
        return "swept_report", str(tmp_path / name / "fleet.json"), ["web01"]

    def prepared(name: str) -> tuple:
        (tmp_path / name).mkdir()
        with fork(*begin(name)) as process:
            assert process.wait() == "ready"
            os.kill(process.pid, signal.SIGUSR1)
            assert process.results()[1]["problem"] == ""
        return begin(name)

    def check(name: str, first: dict) -> None:
        assert first["outcome"] in ("not_sent", "accepted")
        for file in ("fleet.json", "fleet.html", "fleet.xml"):
            assert "web01" in (tmp_path / name / file).read_text()

    require_counted("a report", call, sweep(fork, tmp_path, call, prepared, check))


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
