"""What a task does with the entry that it finds, and what it leaves: every state x every ending of
its request, on both databases, against the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    OUTCOMES,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    carry_out,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ACCEPTED,
    AFTER,
    DONE,
    INTENT,
    STATES,
    UNKNOWN,
    Entry,
    Write,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.ledger import Ledger
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.recording import (
    Recording,
)
from emulator import faults
from ledger.entries import bare, execute, history, put
from ledger.tasks import TOKEN, key, list_task, open_at, task
from support import CREATE, OPERATION, SPECS, UPDATE
from support.ledgers import entry_of
from support.wire import answer, running

ASSET = {"id": "id-1", "name": "web01", "attributes": {"cpu": 4}}
NAMES = {CREATE: "web01", UPDATE: "role-0001"}
WANTED = {CREATE: {"cpu": 4}, UPDATE: {"login": True}}

# What the service does, what the task then reports, and the state it leaves (None: unchanged).
ENDINGS = {
    "success": (None, "accepted", DONE),
    "answer lost": ({"kind": "status", "status": 204, "when": "after"}, "accepted", ACCEPTED),
    "drop": ({"kind": "drop", "when": "after"}, "unknown", UNKNOWN),
    "refusal": ({"kind": "status", "status": 403}, "rejected", None),
}
# What a task does with the entry that it finds.
SENDS, KEEPS, REFUSES = "sends", "keeps", "refuses"
FOUND = {
    None: {CREATE: SENDS, UPDATE: SENDS},
    INTENT: {CREATE: REFUSES, UPDATE: SENDS},
    UNKNOWN: {CREATE: REFUSES, UPDATE: SENDS},
    ACCEPTED: {CREATE: REFUSES, UPDATE: SENDS},
    DONE: {CREATE: KEEPS, UPDATE: SENDS},  # ASSET has no login
}

SENDING = [
    (resource, state)
    for state, does in FOUND.items()
    for resource in does
    if does[resource] == SENDS
]


@dataclass
class Scene:
    """An entry that exists when a task starts, and the service."""

    service: Any
    ledger: Ledger
    location: str
    resource: str

    @property
    def key(self):
        return key(NAMES[self.resource], self.resource)

    def found(self, state: str | None) -> Entry | None:
        """Store an entry with this state; the lease of an intent has ended."""
        asset = ASSET if state == DONE else {}
        return put(self.ledger, self.key, Entry(state, {"name": "web01"}, asset) if state else None)

    def run(self, **options) -> dict:
        given = {"base_url": self.service.url, "retries": 0, "attributes": WANTED[self.resource]}
        return task(self.location, self.resource, **{**given, **options})

    def requests(self) -> int:
        return len(self.service.api.conversation)


@pytest.fixture
def machine(location, opened, service) -> Scene:
    """A machine and a ledger without an entry."""
    return Scene(service, opened(location, base_url=service.url), location, CREATE)


@pytest.fixture(params=OPERATION)
def scene(request, machine) -> Scene:
    return replace(machine, resource=request.param)


def test_the_tables_have_every_state_and_every_outcome():
    assert set(FOUND) == {None, *STATES}
    assert {outcome for outcome, _envelope in AFTER} == set(OUTCOMES)
    assert set(AFTER.values()) == {None, *STATES} - {INTENT}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("resource", "state"), SENDING)
def test_every_transition_from_the_state_found_to_the_state_left(machine, resource, state, ending):
    """Its beginning writes a row of the history, and so does its end."""
    scene = replace(machine, resource=resource)
    fault, outcome, left = ENDINGS[ending]
    before = scene.found(state)
    if fault:
        scene.service.api.add_fault(faults.parse(fault))
    result = scene.run()
    after = entry_of(scene.ledger, scene.key)
    assert (scene.requests(), result["outcome"]) == (1, outcome)
    if left is None:
        assert bare(after) == bare(before)
    else:
        assert after.state == left
        assert after.asset == result.get("asset", before.asset if before else {})
        assert after.sent == result["request"]["body"]
    begun, row = history(scene.ledger, scene.key)
    assert (begun.outcome, begun.from_state, begun.to_state) == ("", state or "absent", INTENT)
    assert (row.outcome, row.from_state, row.began) == (outcome, state or "absent", begun.revision)
    assert row.to_state == (left or state or "absent")


@pytest.mark.parametrize("state", [None, *STATES])
def test_the_entry_found_decides_what_is_done_and_check_mode_says_the_same(scene, state):
    before = scene.found(state)
    does = FOUND[state][scene.resource]
    said = scene.run(check_mode=True)
    assert (entry_of(scene.ledger, scene.key), scene.requests()) == (before, 0)
    result = scene.run()
    assert scene.requests() == (does == SENDS)
    assert said["changed"] is result["changed"] is (does == SENDS)
    assert said.get("failed", False) is result.get("failed", False) is (does == REFUSES)
    if does == REFUSES:
        assert result["outcome"] == (ACCEPTED if state == ACCEPTED else UNKNOWN)
        way = "record it" if state == ACCEPTED else "it may still appear"
        assert way in result["msg"]
        assert "infrastructure.services.in_doubt" in result["msg"]
        assert entry_of(scene.ledger, scene.key) == before


@pytest.mark.parametrize(("resource", "state"), SENDING)
@pytest.mark.parametrize("why", ["no token", "wrong option"])
def test_what_was_not_sent_leaves_the_entry_unchanged(machine, resource, state, why):
    scene = replace(machine, resource=resource)
    before = scene.found(state)
    options = {
        "no token": {
            "access_token": None,
            "auth_url": "http://127.0.0.1:9/token",
            "client_id": "me",
            "client_secret": "hidden",
        },
        "wrong option": {"attributes": {"name": "\ud800"}},
    }[why]
    assert scene.run(**options)["outcome"] == "not_sent"
    assert (entry_of(scene.ledger, scene.key), scene.requests()) == (before, 0)


def test_a_second_task_returns_the_asset_of_the_first(scene):
    first, second = scene.run(), scene.run()
    assert (first["changed"], second["changed"], scene.requests()) == (True, False, 1)
    assert (second["asset"], second["outcome"]) == (first["asset"], "not_sent")
    assert second["ansible_facts"] == {scene.resource: first["asset"]}


def test_a_ledger_belongs_to_one_service(scene):
    """However its URL is spelled; another one is refused before anything is sent."""
    scene.run()
    for spelled in (f"{scene.service.url}/", f"HTTP{scene.service.url[4:]}"):
        assert scene.run(base_url=spelled)["changed"] is False
    for check_mode in (False, True):
        refused = scene.run(base_url="http://127.0.0.1:1", check_mode=check_mode)
        assert (refused["failed"], refused["outcome"]) == (True, "not_sent")
        told = f"belongs to the service {scene.service.url}, and base_url is http://127.0.0.1:1"
        assert told in refused["msg"]
        assert "to_base_url" in refused["msg"]
    assert scene.requests() == 1


def test_no_secret_is_stored(scene):
    token = f"{TOKEN}-as-long-as-real-ones"
    scene.run(access_token=token)
    rows = execute(scene.location, "SELECT * FROM infrastructure_services_entry")
    rows += execute(scene.location, "SELECT * FROM infrastructure_services_history")
    assert len(rows) == 3
    assert token not in repr(rows)


@pytest.mark.parametrize("on_difference", ["warn", "fail"])
def test_a_machine_with_other_values_fails_alone(machine, on_difference):
    """The others of its list are created; what was never sent is one warning of the list."""
    given = {"base_url": machine.service.url, "on_difference": on_difference, "max_failures": 1}
    made = [{"name": name, "attributes": {"cpu": 4}} for name in ("a", "b", "c")]
    list_task(machine.location, [], virtual_machines=made, **given)
    asked = [{**each, "attributes": {"cpu": 4, "team": "t"}} for each in (*made, {"name": "d"})]
    asked[1] = {"name": "b", "attributes": {"cpu": 8}}
    result = list_task(machine.location, [], virtual_machines=asked, **given)
    outcomes = [(item["changed"], item["failed"]) for item in result["results"]]
    kept = (False, False)
    assert outcomes == [kept, (False, on_difference == "fail"), kept, (True, False)]
    differs = "attributes.cpu (8 asked for, 4 recorded)"
    assert differs in result["results"][1]["msg"]
    never, *others = [each for each in result["warnings"] if differs not in each]
    assert (never.partition(" was not sent")[0], others) == ("attributes.team", [])
    assert machine.requests() == 4


def test_complete_takes_the_rest_from_the_ledger_and_is_refused_without_it(machine):
    role = replace(machine, resource=UPDATE)
    refused = role.run(send="complete")
    assert (refused["outcome"], role.requests()) == ("not_sent", 0)
    role.run(description="a role")
    for login in (False, True):
        body = role.run(send="complete", attributes={"login": login})["request"]["body"]
        assert (body["description"], body["attributes"]["login"]) == ("a role", login)
    assert role.requests() == 3


@pytest.mark.parametrize("ending", ["success", "refusal"])
def test_an_outcome_that_cannot_be_recorded_is_in_the_result(scene, ending):
    """The entry stays an intent, so nobody sends it again until it is settled."""
    fault, outcome, _left = ENDINGS[ending]
    if fault:
        scene.service.api.add_fault(faults.parse(fault))

    class Full(Ledger):
        def write(self, changes):
            if any(change.kind is Write.OUTCOME for change in changes):
                raise LedgerError("disk full")
            return super().write(changes)

    def opens(*arguments) -> Ledger:
        ledger = open_at(*arguments)
        ledger.__class__ = Full
        return ledger

    result = scene.run(opens=opens)
    assert (result["failed"], result["changed"]) == (True, ending == "success")
    assert result["outcome"] == outcome
    assert f"outcome is {outcome}, but it could not be recorded: disk full." in result["msg"]
    assert entry_of(scene.ledger, scene.key).state == INTENT
    assert (ending == "refusal") or result["asset"]["id"]


ENTRY, HISTORY = "infrastructure_services_entry", "infrastructure_services_history"
LOSSES = {
    "its end": (
        f"UPDATE {ENTRY} SET state = 'intent', asset = '{{}}', revision = began",
        f"DELETE FROM {HISTORY} WHERE outcome <> ''",
    ),
    "all of it": (f"DELETE FROM {ENTRY}", f"DELETE FROM {HISTORY}"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_ledger_lost_is_recorded_anew(opened, location, loss):
    """As after a failover in the middle of a list to a server that lacks its last rows."""
    recording = Recording(opened(location), Secrets(), "run")
    with running(lambda _request: answer(201, {"id": "vm-1", "name": "web01"})) as wire:
        given = {"name": "web01", "base_url": wire.url, "access_token": TOKEN, "ledger": "none"}
        options = validate(SPECS[CREATE], given)
        carry_out(options, Context(False, options.secrets), lambda _service: recording)
    assert recording.recover() == ""
    ledger = opened(location)
    before = bare(entry_of(ledger, key()))
    for statement in LOSSES[loss]:
        execute(location, statement)
    assert recording.recover().endswith("so it was recorded anew: web01")
    assert bare(entry_of(ledger, key())) == before
    assert history(ledger, key())[-1].outcome == "accepted"
    assert recording.recover() == ""
