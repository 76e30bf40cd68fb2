# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs at once, or a ledger that disappears during one: no machine is created twice or lost,
and nothing hangs.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import DONE
from emulator import faults
from ledger.loops import created, run
from ledger.tasks import key

MACHINES = 25
TEN_TIMES = pytest.mark.parametrize(
    "again", [0, *(pytest.param(n, marks=pytest.mark.stress) for n in range(1, 10))]
)


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture(autouse=True)
def slow(service) -> None:
    """Slow the service down, so that both runs work on the same machines."""
    service.api.add_fault(faults.parse({"kind": "delay", "seconds": 0.01, "count": 0}))


def check(service, ledger, results: list[dict], in_doubt: int = 0) -> None:
    """Assert that every machine exists once and is recorded, except for up to `in_doubt` of them."""
    outcomes = Counter(result["outcome"] for result in results)
    assert set(outcomes) <= {"accepted", "not_sent", "unknown"}
    assert outcomes["unknown"] <= in_doubt
    names = created(service)
    assert sorted(names) == sorted(f"web{number}" for number in range(MACHINES))
    ids = {asset["name"]: asset["id"] for asset in service.api.store.snapshot()["virtual_machines"]}
    entries = {name: ledger.get(key(service, name)) for name in names}
    assert Counter(entry.state == DONE for entry in entries.values())[False] == outcomes["unknown"]
    assert {
        name: entry.asset["id"] for name, entry in entries.items() if entry.state == DONE
    }.items() <= ids.items()


def symlink(path: str) -> str:
    Path(f"{path}.link").symlink_to(path)
    return f"{path}.link"


def hard_link(path: str) -> str:
    os.link(path, f"{path}.link")
    return f"{path}.link"


def no_lock(path: str) -> str:
    os.unlink(f"{path}.lock")
    return path


@TEN_TIMES
@pytest.mark.parametrize("other", [symlink, hard_link, no_lock])
def test_two_names_of_one_ledger(path, fork, service, opened, other: Callable[[str], str], again):
    """The second run starts after the first; through a hard link it is refused.

    Without the lock neither can wait for the other's request in flight, and reports that it does
    not know.
    """
    with fork("loop", path, service.url, MACHINES) as first:
        first.wait(2)
        with fork("loop", other(path), service.url, MACHINES) as second:
            results = [*first.results(), *second.results()]
    if other is no_lock:
        results = [result for result in results if result["outcome"] != "unknown"]
    if other is hard_link:
        assert all("has 2 names" in result["msg"] for result in second.said)
        os.unlink(f"{path}.link")
    check(service, opened(path), results)


@TEN_TIMES
@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_ledger_that_disappears_during_a_loop(path, fork, service, opened, what, again):
    """Nothing more is sent; once the file is back, the next run creates what is missing and nothing
    else.
    """
    run(fork, path, service, 2)
    shutil.copy(path, f"{path}.backup")
    with fork("loop", path, service.url, MACHINES) as loop:
        loop.wait(8)
        os.rename(path, f"{path}.gone")
        if what == "replaced":
            shutil.copy(f"{path}.backup", path)
        results = loop.results()
    assert results[-1]["outcome"] == "not_sent"
    assert "was removed or replaced while it was in use" in results[-1]["msg"]
    sent = len(service.api.conversation)
    assert sent < MACHINES
    os.replace(f"{path}.gone", path)
    # The request in flight when the file disappeared could not be recorded.
    check(service, opened(path), run(fork, path, service, MACHINES), in_doubt=1)
    assert len(service.api.conversation) == MACHINES
