# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task does with the entry it finds, and what it leaves behind: on both databases, against
the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import decisions
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ACCEPTED,
    DONE,
    INTENT,
    STATES,
    UNKNOWN,
    Entry,
    LedgerError,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.store import Ledger
from emulator import faults
from ledger.entries import bare, put
from ledger.tasks import TOKEN, key, task
from support import CREATE, RESOURCES, UPDATE
from support.databases import schema_in

ASSET = {"id": "id-1", "name": "web01", "attributes": {"cpu": 4}}
ROLE = "role-0001"

# What the service does, what the task then reports, and the state it leaves (None: unchanged).
ENDINGS = {
    "success": (None, "accepted", DONE),
    "answer lost": ({"kind": "status", "status": 204, "when": "after"}, "accepted", ACCEPTED),
    "drop": ({"kind": "drop", "when": "after"}, "unknown", UNKNOWN),
    "refusal": ({"kind": "status", "status": 403}, "rejected", None),
}
NAMES = {CREATE: "web01", UPDATE: ROLE}


@dataclass
class Scene:
    """An entry that exists when a task starts, and the service."""

    service: object
    ledger: Ledger
    resource: str

    @property
    def key(self):
        return key(self.service, NAMES[self.resource], self.resource)

    def found(self, state: str | None) -> Entry | None:
        """Store an entry with this state."""
        if state:
            put(
                self.ledger,
                self.key,
                Entry(state, {"name": "web01"}, ASSET if state == DONE else {}, "before"),
            )
        return self.ledger.get(self.key)

    def run(self, **options) -> dict:
        given = {"base_url": self.service.url, "retries": 0, **options}
        return task(self.ledger, self.resource, **given)

    def requests(self) -> int:
        return len(self.service.api.conversation)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request, tmp_path_factory) -> str:
    """The ledger of all these tests."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("states") / "ledger.db")
    return schema_in(request.getfixturevalue("postgres_server"))


@pytest.fixture
def location(place, opened) -> str:
    """The ledger without an entry."""
    for table in ("entry", "history"):
        opened(place).database.execute(f"DELETE FROM infrastructure_services_{table}")
    return place


@pytest.fixture(params=RESOURCES)
def scene(request, location, opened, service) -> Scene:
    return Scene(service, opened(location), request.param)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("state", [None, *STATES])
def test_every_transition_from_the_state_found_to_the_state_left(scene, state, ending):
    fault, outcome, left = ENDINGS[ending]
    before = scene.found(state)
    if fault:
        scene.service.api.add_fault(faults.parse(fault))
    result = scene.run(force=True)
    after = scene.ledger.get(scene.key)
    assert (scene.requests(), result["outcome"]) == (1, outcome)
    if left is None:
        assert bare(after) == bare(before)
    else:
        assert after.state == left
        assert after.asset == result.get("asset", before.asset if before else {})
        assert after.sent == result["request"]["body"]


@pytest.mark.parametrize("state", [None, *STATES])
def test_a_request_that_was_not_sent_leaves_the_entry_unchanged(scene, state):
    before = scene.found(state)
    nobody = {"auth_url": "http://127.0.0.1:9/token", "client_id": "me", "client_secret": "hidden"}
    result = scene.run(force=True, access_token=None, **nobody)
    assert (result["outcome"], scene.requests(), bare(scene.ledger.get(scene.key))) == (
        "not_sent",
        0,
        bare(before),
    )


@pytest.mark.parametrize("state", [None, *STATES])
def test_the_entry_found_decides_what_is_done(scene, state):
    scene.found(state)
    doing = decisions.ON_FINDING[state][RESOURCES[scene.resource].operation.method]
    options = (
        {"attributes": {"cpu": 4}} if scene.resource == CREATE else {"attributes": {"login": True}}
    )
    result = scene.run(**options)
    sends = doing == decisions.SEND or (
        doing == decisions.COMPARE and scene.resource == UPDATE
    )  # ASSET has no login
    assert scene.requests() == sends
    assert result["changed"] is sends
    assert result.get("failed", False) is (doing == decisions.REFUSE)
    if doing == decisions.REFUSE:
        assert result["outcome"] == ("accepted" if state == ACCEPTED else "unknown")
        ways = {
            "ledger_entry",
            "state: present",
            *(() if state == ACCEPTED else ("state: absent", "force: true")),
        }
        assert {
            way for way in (*ways, "state: absent", "force: true") if way in result["msg"]
        } == ways


@pytest.mark.parametrize("state", [None, *STATES])
@pytest.mark.parametrize("force", [False, True])
def test_check_mode_reports_the_same_and_writes_nothing(scene, state, force):
    before = scene.found(state)
    said = scene.run(check_mode=True, force=force)
    assert (scene.ledger.get(scene.key), scene.requests()) == (before, 0)
    done = scene.run(force=force)
    assert (said["changed"], said.get("failed")) == (done["changed"], done.get("failed"))


def test_a_second_task_returns_the_asset_of_the_first(scene):
    first, second = scene.run(), scene.run()
    assert (first["changed"], second["changed"], scene.requests()) == (True, False, 1)
    assert (second["asset"], second["outcome"]) == (first["asset"], "not_sent")
    assert second["ansible_facts"] == {scene.resource: first["asset"]}


@pytest.mark.parametrize("other", ["{}/", "HTTP{}"])
def test_one_service_has_one_entry_however_its_url_is_spelled(scene, other):
    scene.run()
    url = other.format(scene.service.url if "/" in other else scene.service.url[4:])
    assert scene.run(base_url=url)["changed"] is False


def test_a_refused_option_leaves_no_entry(scene):
    for wrong in ({"timeout": 0}, {"attributes": {"name": "\ud800"}}):
        assert scene.run(**wrong)["outcome"] == "not_sent"
        assert (scene.ledger.get(scene.key), scene.requests()) == (None, 0)


def test_no_secret_is_stored(scene):
    token = f"{TOKEN}-as-long-as-real-ones"
    result = scene.run(attributes={"name": f"x{token}x"}, access_token=token)
    assert result["changed"] is True
    assert token not in repr(
        scene.ledger.database.execute("SELECT * FROM infrastructure_services_entry")
    )


def test_different_values_for_a_machine_raise_a_warning(location, service):
    task(location, base_url=service.url, attributes={"cpu": 4, "team": "a"})
    result = task(location, base_url=service.url, attributes={"cpu": 8, "team": "a"})
    assert result["changed"] is False
    (warning,) = result["warnings"]
    assert "attributes.cpu (8 asked for, 4 recorded)." in warning
    assert "team" not in warning


def test_complete_takes_the_rest_from_the_ledger(location, service):
    task(location, UPDATE, base_url=service.url, attributes={"login": True}, description="a role")
    for force, login in ((False, False), (True, False), (True, True)):
        result = task(
            location,
            UPDATE,
            base_url=service.url,
            attributes={"login": login},
            send="complete",
            force=force,
        )
        assert result["request"]["body"]["description"] == "a role"
        assert result["request"]["body"]["attributes"]["login"] is login
    assert len(service.api.conversation) == 4


def test_complete_is_refused_when_the_ledger_has_no_asset(location, opened, service):
    result = task(
        location, UPDATE, base_url=service.url, attributes={"login": False}, send="complete"
    )
    assert (result["outcome"], service.api.conversation) == ("not_sent", [])
    assert opened(location).get(key(service, ROLE, UPDATE)) is None


@pytest.mark.parametrize("accepted", [True, False])
def test_an_answer_that_cannot_be_recorded_is_in_the_result(scene, monkeypatch, accepted):
    def full(*_arguments):
        raise LedgerError("ledger: disk full")

    monkeypatch.setattr(scene.ledger, "finish", full)
    if not accepted:
        scene.service.api.add_fault(faults.parse({"kind": "status", "status": 403}))
    result = scene.run()
    assert (result["failed"], result["changed"]) == (True, accepted)
    assert result["outcome"] == ("accepted" if accepted else "rejected")
    assert "could not be recorded: ledger: disk full." in result["msg"]
    assert scene.ledger.get(scene.key).state == INTENT
    if accepted:
        assert result["asset"]["id"]
    else:
        assert "status 403" in result["msg"]
