"""Faults as data: which are valid, and which request meets which."""

from __future__ import annotations

import pytest
from emulator.faults import Fault, parse, select

NEEDED = {"status": {"status": 500}, "redirect": {"location": "/x"}}


def fault(kind: str, **values: object) -> Fault:
    return parse({"kind": kind, **NEEDED.get(kind, {}), **values})


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        {"kind": "x"},
        {"kind": "status"},
        {"kind": "redirect"},
        {"kind": "drop", "status": 500},
        {"kind": "drop", "operation": "delete"},
        {"kind": "drop", "count": -1},
        {"kind": "drop", "skip": None},
        {"kind": "drop", "when": "later"},
        {"kind": "drip", "when": "before"},
        {"kind": "status", "status": 99},
        {"kind": "status", "status": 500, "headers": {"A": "x\r\nB: y"}},
        {"kind": "status", "status": 500, "headers": [["A"]]},
        {"kind": "delay", "seconds": -1},
        {"kind": "truncate", "part": "tail"},
        {"kind": "truncate", "bytes": -1},
        {"kind": "garbage", "base64": "!"},
    ],
)
def test_an_invalid_fault_is_refused_with_a_message(said):
    with pytest.raises(ValueError, match=r"\w+ .*(needs|cannot be|has no|is an object)"):
        parse(said)


def test_faults_are_met_one_after_another():
    role = "update_application_role"
    endless = fault("delay", operation=role, count=0)  # until reset
    faults = (
        *(fault("status", count=2, skip=1), fault("drop", operation="token"), fault("reset")),
        endless,
    )
    seen = []
    for operation in ["token", "token", None, "create_virtual_machine", "token", role, role]:
        met, faults = select(faults, operation)
        seen.append(met and met.kind)
    assert seen == ["drop", "status", "status", "reset", None, "delay", "delay"]
    assert faults == (endless,)
