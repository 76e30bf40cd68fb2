# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode of a list is the plan, and the next run does exactly that: for each state of an entry
and each option.
"""

from __future__ import annotations

import json
from itertools import product

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    STATES,
    Change,
    Entry,
    Key,
    Kind,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    list_entries,
)
from ledger.entries import put
from support import CREATE, UPDATE
from support.lists import run_list

PLURALS = {CREATE: VIRTUAL_MACHINES, UPDATE: APPLICATION_ROLES}
ATTRIBUTES = {CREATE: ({"cpu": 4}, {"cpu": 8}), UPDATE: ({"login": True}, {"login": False})}
PLANS = {CREATE: {"create", "keep", "differs", "in_doubt"}, UPDATE: {"update", "keep"}}
SURPLUS = "recorded, but not listed"


class Fleet:
    """One asset for each state and each previously sent body: the same as wanted now, or a
    different one.
    """

    def __init__(self, service, ledger, location: str, resource: str) -> None:
        self.service, self.ledger, self.location, self.plural = (
            service,
            ledger,
            location,
            PLURALS[resource],
        )
        self.wanted, other = ATTRIBUTES[resource]
        self.names = {
            f"{state}-{place}": (state, sent)
            for state in STATES
            for place, sent in enumerate((self.wanted, other))
        }
        for name, (state, sent) in {**self.names, SURPLUS: (DONE, other)}.items():
            service.api.store.seed(name, {"name": name, "attributes": sent})
            asset = {"id": name, "name": name, "attributes": sent} if state == DONE else {}
            put(
                ledger,
                Key(service.url, resource, name),
                Entry(state, {"name": name, "attributes": sent}, asset),
            )
        self.names["new"] = (None, None)
        service.api.store.seed("new", {})

    def run(self, check_mode: bool = False, given: list[dict] | None = None, **options) -> dict:
        """Return the result of the list."""
        listed = [{self.plural.key: name, "attributes": self.wanted} for name in self.names]
        options = {
            "base_url": self.service.url,
            "access_token": "token-of-the-tests",
            "retry_max_delay": 0,
            self.plural.option: given or listed,
            **options,
        }
        return run_list(self.plural, options, check_mode=check_mode, location=self.location)

    def sent(self) -> set[str]:
        """The names or ids of what the service received."""
        entries = [entry.as_dict() for entry in self.service.api.conversation]
        bodies = [
            json.loads(entry["body"])["name"] for entry in entries if entry["method"] == "POST"
        ]
        return {
            *bodies,
            *(entry["path"].rpartition("/")[2] for entry in entries if entry["method"] == "PUT"),
        }


@pytest.fixture
def fleet(service, location, opened):
    return lambda resource: Fleet(service, opened(location), location, resource)


OPTIONS = [
    (CREATE, {"force": force, "on_difference": on})
    for force, on in product((False, True), ("warn", "fail"))
]
OPTIONS += [
    (CREATE, {"in_doubt": word, "on_difference": on})
    for word in ("skip", "stop")
    for on in ("warn", "fail")
]
OPTIONS += [(UPDATE, {"force": force}) for force in (False, True)]


def words(planned: dict) -> dict[str, str]:
    """What is planned for each item; what is skipped keeps the plan that it has once the others are
    settled.
    """
    return {
        item["item"]: "skipped" if item.get("skipped") else item["plan"]
        for item in planned["results"]
    }


@pytest.mark.parametrize(("resource", "options"), OPTIONS, ids=str)
def test_the_next_run_does_what_the_plan_says(fleet, resource, options):
    assets = fleet(resource)
    before = list_entries(assets.ledger, LIST)["entries"]
    planned = assets.run(check_mode=True, **options)
    plan = words(planned)
    assert (assets.sent(), list_entries(assets.ledger, LIST)["entries"]) == (set(), before)
    assert set(plan.values()) <= PLANS[resource] | {"skipped"}
    assert ("skipped" in plan.values()) == (options.get("in_doubt") == "stop")
    assert planned["not_listed"] == [SURPLUS]
    assert planned["counts"]["not_listed"] == 1
    done = {item["item"]: item for item in assets.run(**options)["results"]}
    assert assets.sent() == {name for name, word in plan.items() if word in ("create", "update")}
    assert {name for name, item in done.items() if item["changed"]} == assets.sent()
    for item in planned["results"]:
        assert (item["changed"], item["failed"]) == (
            done[item["item"]]["changed"],
            done[item["item"]]["failed"],
        )
        assert (plan[item["item"]] == "skipped") == done[item["item"]].get("skipped", False)
    sent = {"create", "update"}
    doubtful = {name for name, item in done.items() if item["outcome"] in ("unknown", "accepted")}
    assert doubtful == {name for name, word in plan.items() if word == "in_doubt" or word in sent}
    assert all(
        done[name]["failed"] == (options.get("in_doubt") != "skip")
        for name, word in plan.items()
        if word == "in_doubt"
    )
    again = assets.run(check_mode=True, **{**options, "force": False})
    expected = {"create": "keep", "update": "keep"}
    assert words(again) == {name: expected.get(word, word) for name, word in plan.items()}


def test_the_plan_of_each_state(fleet):
    assets = fleet(CREATE)
    plan = {item["item"]: item["plan"] for item in assets.run(check_mode=True)["results"]}
    doubtful = {
        f"{state}-{place}": "in_doubt" for state in STATES if state != DONE for place in (0, 1)
    }
    assert plan == {"new": "create", "done-0": "keep", "done-1": "differs", **doubtful}


def test_assets_in_doubt_in_a_list_are_not_to_be_forced(fleet):
    doubtful = [
        item["msg"]
        for item in fleet(CREATE).run()["results"]
        if item["outcome"] in ("unknown", "accepted") and item["failed"]
    ]
    assert len(doubtful) == 6
    assert all("ledger_entry" in msg and "force" not in msg for msg in doubtful)


def test_differences_are_reported_with_both_values(fleet):
    planned = fleet(CREATE).run(check_mode=True)
    (differing,) = [item for item in planned["results"] if item["plan"] == "differs"]
    assert "attributes.cpu (4 asked for, 8 recorded)" in differing["msg"]


def test_diff_mode_shows_both_values_of_what_would_be_updated(fleet):
    planned = fleet(UPDATE).run(check_mode=True)
    pairs = [
        (diff["before"].get("attributes"), diff["after"]["attributes"]) for diff in planned["diff"]
    ]
    assert ({"login": False}, {"login": True}) in pairs


def test_of_thousands_that_are_not_listed_some_are_named_and_all_are_counted(
    service, location, opened
):
    """A result of more than 700,000 characters is dropped by ansible-runner and AWX."""
    entry = Entry(DONE, {}, {"id": "1"})
    names = [f"vm{number:06}" for number in range(5_000)]
    opened(location).write(
        [Change(Key(service.url, CREATE, name), None, entry) for name in names], Kind.BEGIN
    )
    options = {"base_url": service.url, "access_token": "token-of-the-tests"}
    options["virtual_machines"] = [{"name": "vm000000"}]
    planned = run_list(VIRTUAL_MACHINES, options, check_mode=True, location=location)
    assert planned["not_listed"] == names[1:1_001]
    assert planned["counts"]["not_listed"] == 4_999


LIST = {
    "base_url": None,
    "resource": None,
    "names": None,
    "states": None,
    "changed_since": None,
    "run": None,
    "history": False,
}


@pytest.mark.parametrize("resource", PLURALS)
def test_a_list_from_the_ledger_changes_nothing(fleet, resource):
    assets = fleet(resource)
    attributes = {"zone": "z1", **ATTRIBUTES[resource][1]}
    put(
        assets.ledger,
        Key(assets.service.url, resource, "extra"),
        Entry(
            DONE,
            {"name": "extra", "attributes": attributes},
            {"id": "extra", "name": "extra", "attributes": attributes},
        ),
    )
    entries = list_entries(assets.ledger, {**LIST, "resource": resource, "states": [DONE]})[
        "entries"
    ]
    assert len(entries) == 4
    given = [entry["options"] for entry in entries]
    assert {item["plan"] for item in assets.run(check_mode=True, given=given)["results"]} == {
        "keep"
    }
    result = assets.run(given=given)
    assert (result["changed"], result["counts"]["failed"], assets.sent()) == (False, 0, set())
    assert (
        list_entries(assets.ledger, {**LIST, "resource": resource, "states": [DONE]})["entries"]
        == entries
    )
