# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: every named fault, a POST and a PUT each, over real sockets."""

from __future__ import annotations

import re
import socket

import pytest
from support import CREATE, UPDATE

from .case import Case, Seen
from .lab import Lab, asset_is_whole, contradiction, lab_of, run
from .table import CASES

# Faults of the service itself, which can occur only once.
_GOOD = Case._field_defaults["script"]
ONCE = [case for case in CASES if case.script is not _GOOD and not (case.times or case.identity)]


def ask_a_name_server(real):
    """Return a look-up whose name server knows two names: one that does not exist, one that it resolves only later."""
    failures = {"no-such-host": socket.EAI_NONAME, "ask-later": socket.EAI_AGAIN}

    def look_up(host, *args, **kwargs):
        if host in failures:
            raise socket.gaierror(failures[host], "scripted")
        return real(host, *args, **kwargs)
    return look_up


def seen(lab: Lab, result: dict) -> Seen:
    """Return how a task ended, and what the service saw of it."""
    received, done = len(lab.service.received), len(lab.service.done)
    return Seen(result["outcome"], result.get("attempts"), received, done, "failed" not in result)


def assert_verdict(lab: Lab, case: Case, resource: str, result: dict) -> None:
    """Compare the result of the case, and the state of the service afterwards, with the expected ones."""
    expected = case.post if resource == CREATE else case.put
    assert contradiction(lab, result) == ""
    assert seen(lab, result) == expected, result.get("msg")
    if expected.success:
        assert asset_is_whole(lab, result) or not case.verbatim
    else:
        assert case.says in result["msg"]


@pytest.mark.parametrize("relayed", [False, pytest.param(True, marks=pytest.mark.stress)], ids=["direct", "one-byte"])
@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
@pytest.mark.parametrize("case", CASES, ids=[f"{case.number}-{case.name}" for case in CASES])
def test_fault(case, resource, relayed, tmp_path, authority, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", ask_a_name_server(socket.getaddrinfo))
    with lab_of(case, resource, tmp_path, authority, relayed=relayed) as lab:
        result = run(lab, case)
    assert_verdict(lab, case, resource, result)
    assert case.check is None or case.check(lab, result)


def outlasted(expected: Seen) -> Seen:
    """Return how a task ends when only its first attempt fails as in the row, and the policy allows a second one."""
    return Seen("accepted", 2, expected.received // 2 + 1, expected.done // 2 + 1, success=True)


@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
@pytest.mark.parametrize("case", ONCE, ids=[f"{case.number}-{case.name}" for case in ONCE])
def test_fault_that_passes(case, resource, tmp_path, authority):
    with lab_of(case._replace(times=1), resource, tmp_path, authority) as lab:
        result = run(lab, case)
    expected = case.post if resource == CREATE else case.put
    assert contradiction(lab, result) == ""
    assert seen(lab, result) == (outlasted(expected) if expected.attempts == 2 else expected), result.get("msg")


def test_every_named_case_is_in_the_table():
    named = [int(match.group()) for case in CASES if (match := re.match("[0-9]+", case.number))]
    assert sorted(set(named)) == list(range(1, 101))
    assert len({case.number for case in CASES}) == len(CASES)
