"""What an approved plan allows, and for which service and ledger."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import Serial
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Header
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.approval import (
    approved_plan,
)
from support.pages import LEDGER, MACHINE, ROLE, SERVICE, row_of, run_of

ID = "0" * 32
BODY = {"name": "new", "attributes": {"team": "web"}}


def plan(**more: object) -> dict:
    """A plan that creates a machine."""
    new = row_of("new", "to create", plan="create", changed=True, body=BODY)
    serial = {"number": 0, "revision": 0}
    rows = [new, row_of("kept", "unchanged", plan="keep")]
    return run_of(rows, **{"state": "planned", "ledger_id": ID, "serial": serial, **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "fleet.plan.json"


def approved(file: Path, resource: str = MACHINE, ledger_id: str | None = ID):
    """Return the approved plan for a list on a ledger that has no history; None: without one."""
    header = Header(ledger_id, SERVICE, "in use") if ledger_id else None
    ledger = SimpleNamespace(header=header, where=LEDGER, has_row=lambda serial: serial == Serial())
    return approved_plan(str(file), resource, SERVICE, ledger if ledger_id else None)


def test_only_what_a_plan_of_the_service_sends_is_approved(file):
    file.write_text(json.dumps(plan()))
    assert {name: row.body for name, row in approved(file).items()} == {"new": BODY}
    assert approved(file, ROLE) == {}


def nested(levels: int) -> list:
    return [nested(levels - 1)] if levels else []


def forged(change: Callable[[dict], object]) -> str:
    run = plan()
    change(run)
    return json.dumps(run)


NO_PLAN = "is no plan of this collection, is damaged, or has an asset twice"
OF_ANOTHER = (
    f"was made for https://other.example and the ledger {LEDGER}, and this list is for {SERVICE}"
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (json.dumps(plan())[:-9], NO_PLAN),
        ("[" * 200_000, NO_PLAN),
        (json.dumps(plan(state="ended")), NO_PLAN),
        (json.dumps(plan(format="another report")), NO_PLAN),
        (json.dumps(plan(serial={"number": -1, "revision": 0})), NO_PLAN),
        (json.dumps(plan(service="https://other.example")), OF_ANOTHER),
        (json.dumps(plan(service="a" * 9000)), "for (too long to be shown) and"),
        (json.dumps(plan(service=None)), NO_PLAN),
        (json.dumps(plan(ledger=7)), NO_PLAN),
        (json.dumps(plan(ledger_id=7)), "was made for"),
        (json.dumps(plan(serial={"number": 1, "revision": 1})), "with a history"),
        (forged(lambda run: run["results"].append(run["results"][0])), NO_PLAN),
        (forged(lambda run: run["results"][0].update(body="x")), NO_PLAN),
        (forged(lambda run: run["results"][0].update(last_row=2**63)), NO_PLAN),
        (forged(lambda run: run["results"][0].update(body={"a": nested(70)})), NO_PLAN),
    ],
)
def test_what_is_no_plan_approves_nothing(file, text, problem):
    file.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        approved(file)
    assert refused.value.msg.startswith("approved: ")
    assert problem in refused.value.msg


@pytest.mark.parametrize(
    ("made", "used", "problem"),
    [
        (ID, ID, ""),
        (ID, "1" * 32, "was made for .* the ledger "),  # made anew, or another one
        (None, ID, "was made for .* the ledger "),
        (ID, None, "needs a ledger"),
        (None, None, "needs a ledger"),
    ],
    ids=str,
)
def test_a_plan_is_for_the_ledger_that_it_was_made_against(file, made, used, problem):
    file.write_text(json.dumps(plan(ledger_id=made)))
    refused = pytest.raises(InvalidInput, match=f"^approved: .*{problem}")
    with refused if problem else nullcontext():
        approved(file, ledger_id=used)


def test_a_plan_that_was_refused_cannot_be_approved(file):
    file.write_text(json.dumps(plan(refused="the ledger has gone back in time.")))
    with pytest.raises(InvalidInput, match="cannot be approved: the ledger has gone back"):
        approved(file)
