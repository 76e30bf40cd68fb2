"""The fault matrix: every named fault, a POST and a PUT each, over real sockets."""

from __future__ import annotations

import json
import socket

import pytest
from support import CREATE, UPDATE

from .case import End
from .lab import Lab, assert_agreement, lab_of, run
from .table import CASES


def ask_a_name_server(real):
    """Return a look-up whose name server knows two names: one that does not exist, one that it
    resolves only later.
    """
    failures = {"no-such-host": socket.EAI_NONAME, "ask-later": socket.EAI_AGAIN}

    def look_up(host, *args, **kwargs):
        if host in failures:
            raise socket.gaierror(failures[host], "scripted")
        return real(host, *args, **kwargs)

    return look_up


def seen(lab: Lab, result: dict) -> End:
    """Return how a task ended, and what the service saw of it."""
    received, done = len(lab.service.received), len(lab.service.done)
    return End(
        result["outcome"], result.get("request_attempts"), received, done, "failed" not in result
    )


@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_fault(case, resource, tmp_path, authority, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", ask_a_name_server(socket.getaddrinfo))
    with lab_of(case, resource, tmp_path, authority) as lab:
        result = run(lab, case)
    expected = case.ends.of(resource)
    assert_agreement(lab, result)
    assert seen(lab, result) == expected, result.get("msg")
    if expected.success:
        assert result["asset"].items() >= json.loads(lab.service.envelopes[-1]).items()
    else:
        assert case.says in result["msg"]
    assert case.check is None or case.check(lab, result)


def test_each_case_has_its_number():
    numbers = [case.name.split()[0] for case in CASES]
    assert len(set(numbers)) == len(numbers)
