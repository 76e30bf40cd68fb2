"""Every socket call of a task fails once: the first, the second, ... until a run has no failing
call.
"""

from __future__ import annotations

import gc
import itertools

import pytest
from support import CREATE, UPDATE
from support.service import Service

from .behaviors import grants
from .case import Case
from .injector import FAULTS, Injector
from .lab import assert_agreement, asset_is_whole, lab_of, run
from .relay import Relay

MOST_CALLS = 1000  # more than any run has: the sweep ends before


WAYS = [
    Case("http"),
    Case("https", tls="server"),
    Case("token", token_endpoint=grants()),
    Case("proxy", tls="server"),
]


def fail_one_call(case: Case, resource: str, injector: Injector, surroundings) -> bool:
    """Run a task in which one socket call fails, check that it reports the truth, and return
    whether a call failed.
    """
    with lab_of(case, resource, *surroundings) as lab:
        if case.name == "proxy":
            with Service(Relay(lab.service.port)) as proxy:
                lab.others["proxy"] = proxy
                with injector:
                    result = run(lab, case)
        else:
            with injector:
                result = run(lab, case)
    told = f"call {injector.nth} of {injector.calls}, {injector.fault}: {result.get('msg', 'ok')}"
    assert_agreement(lab, result, told)
    if "failed" in result:  # a PUT survives any single fault, and so does a POST that sent nothing
        assert resource == CREATE, told
        assert result["outcome"] in ("unknown", "accepted"), told
    else:
        assert asset_is_whole(lab, result), told
    return injector.fired


@pytest.mark.parametrize("resource", [CREATE, UPDATE], ids=["POST", "PUT"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", WAYS, ids=lambda case: case.name)
def test_each_call_of_each_kind_of_connection(case, resource, fault, tmp_path, authority):
    for nth in itertools.count(1):
        assert nth < MOST_CALLS
        if not fail_one_call(case, resource, Injector(nth, fault), (tmp_path, authority)):
            assert nth > 2, "a task without socket calls proves nothing"
            gc.collect()  # a socket that was left open fails this test, not a later one
            return
