"""Both places where a task runs, crossed with every ledger, every fate of the request and every form
of a task.
"""

from __future__ import annotations

import pytest
from crossing.table import (
    CPU,
    FATES,
    PATHS,
    Case,
    cases,
    created,
    expected,
    ledgers,
    predicted,
)

# Each path is one run of a minute or more, so make test covers only the first.
MARKS = dict.fromkeys(PATHS[1:], pytest.mark.matrix)
CPU_OF_WARNING = 8


def row(path: str, ledger: str, case: Case):
    """Return the parameters of a test."""
    name = f"{path}-{ledger}-{case.task.replace(', ', '-')}"
    return pytest.param(path, ledger, case, id=name, marks=MARKS.get(path, ()))


CASES = [
    row(path, ledger, case) for path in PATHS for ledger in ledgers(path) for case in cases(path)
]


def asset(kind: str, name: str, fate: str) -> dict | None:
    """Return the envelope that a result should hold."""
    if kind == "predicted":
        return predicted(name)
    return created(name, *([CPU_OF_WARNING] if fate == "warning" else [])) if kind else None


def known_of(found: dict | None, kind: str) -> dict | None:
    """Return an envelope; of a predicted one without the attributes that only the service knows."""
    if found is None or kind != "predicted":
        return found
    attributes = found["attributes"].items()
    return {**found, "attributes": {name: value for name, value in attributes if value == CPU}}


@pytest.mark.parametrize(("path", "ledger", "case"), CASES)
def test_a_task_reports_what_happened(crossed, path: str, ledger: str, case: Case):
    want = expected(path, ledger, case.fate, case.form)
    results = crossed(path).results(ledger, case.task)
    assert len(results) == len(case.names())
    for name, result in zip(case.names(), results):
        known = (result.get("outcome"), result["failed"], result.get("changed"))
        assert known == (want.outcome, want.failed, want.changed), result
        assert known_of(result.get("asset"), want.asset) == asset(want.asset, name, case.fate)
        assert [word for word in want.says if word not in result.get("msg", "")] == [], result
        assert any(want.warns in str(warning) for warning in result.get("warnings", [""])), result
        facts = result.get("ansible_facts", {}).get("compute_virtual_machine")
        assert facts == (result["asset"] if want.asset else None)


@pytest.mark.parametrize(("path", "ledger", "case"), CASES)
def test_the_service_receives_the_expected_requests(crossed, path: str, ledger: str, case: Case):
    want = expected(path, ledger, case.fate, case.form)
    sent = crossed(path).sent(ledger, case.machine, case.form)
    assert len(sent) == want.requests * len(case.names())
    tokens = [
        value for request in sent for name, value in request.headers if name == "Authorization"
    ]
    each = [
        f"Bearer token-of-{case.machine}" + (f"-{item}" if case.items else "")
        for item in range(case.items or 1)
    ]
    assert set(tokens) == set(each if sent else [])


@pytest.mark.parametrize(("path", "ledger", "case"), CASES)
def test_the_ledger_records_it(crossed, path: str, ledger: str, case: Case):
    is_recorded = ledger != "none" and case.form != "check"
    state = FATES[case.fate].state if is_recorded else None
    machine = f"vm-{case.machine}-"
    known = {
        name: state
        for name, state in crossed(path).entries[ledger].items()
        if f"{name}-".startswith(machine)
    }
    assert known == (dict.fromkeys(case.names(), state) if state else {})
