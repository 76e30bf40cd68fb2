"""Check mode of a list is the plan, and the next run does exactly that, for each state of an entry
and each option; an approved plan is good for one effect on each asset.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    DONE,
    STATES,
    Entry,
)
from ledger.entries import edited, listed, put_all
from ledger.tasks import key, list_task
from ledger.test_crash import slow_down
from support import CREATE, UPDATE

PLURALS = {CREATE: VIRTUAL_MACHINES, UPDATE: APPLICATION_ROLES}
ATTRIBUTES = {CREATE: ({"cpu": 4}, {"cpu": 8}), UPDATE: ({"login": True}, {"login": False})}
PLANS = {CREATE: {"create", "keep", "differs", "in_doubt"}, UPDATE: {"update", "keep"}}
SURPLUS = "recorded, but not listed"


class Fleet:
    """One asset for each state and each previously sent body: the same as wanted now, or a
    different one.
    """

    def __init__(self, service, ledger, location: str, resource: str) -> None:
        self.service, self.ledger, self.location = service, ledger, location
        self.plural = PLURALS[resource]
        self.wanted, other = ATTRIBUTES[resource]
        sent = {
            f"{state}-{number}": (state, attributes)
            for state in STATES
            for number, attributes in enumerate((self.wanted, other))
        }
        entries = {}
        for name, (state, attributes) in {**sent, SURPLUS: (DONE, other)}.items():
            service.api.store.seed(name, {"name": name, "attributes": attributes})
            body = {"name": name, "attributes": attributes}
            asset = {"id": name, **body} if state == DONE else {}
            entries[key(name, resource)] = Entry(state, body, asset)
        put_all(ledger, entries)
        self.names = [*sent, "new"]
        service.api.store.seed("new", {})

    def run(self, check_mode: bool = False, given: list[dict] | None = None, **options) -> dict:
        """Return the result of the list."""
        listed = [{self.plural.key: name, "attributes": self.wanted} for name in self.names]
        options = {self.plural.option: given or listed, "max_unknown": 0, **options}
        return list_task(
            self.location, [], self.plural, check_mode, base_url=self.service.url, **options
        )

    def listed(self) -> list[dict]:
        return listed(self.ledger)["entries"]


@pytest.fixture
def fleet(service, opened, location):
    return lambda resource: Fleet(service, opened(location), location, resource)


OPTIONS = [
    *(
        (CREATE, {"in_doubt": in_doubt, "on_difference": on})
        for in_doubt in ("fail", "skip", "stop")
        for on in ("warn", "fail")
    ),
    (UPDATE, {}),
]


def plan_of(planned: dict) -> dict[str, str]:
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
    before = assets.listed()
    planned = assets.run(check_mode=True, **options)
    plan = plan_of(planned)
    assert (assets.service.api.conversation, assets.listed()) == ([], before)
    assert set(plan.values()) <= PLANS[resource] | {"skipped"}
    if resource == CREATE:
        assert {plan[name] for name in assets.names if name[:4] not in ("done", "new")} == {
            "in_doubt"
        }
        assert plan["done-0"] in ("keep", "skipped")
        assert plan["done-1"] in ("differs", "skipped")
    assert ("skipped" in plan.values()) == (options.get("in_doubt") == "stop")
    assert planned["not_listed"] == [SURPLUS]
    assert planned["counts"]["not_listed"] == 1
    done = {item["item"]: item for item in assets.run(**options)["results"]}
    expected = {name for name, word in plan.items() if word in ("create", "update")}
    assert len(assets.service.api.conversation) == len(expected)
    assert {name for name, item in done.items() if item["changed"]} == expected
    for item in planned["results"]:
        name = item["item"]
        assert (item["changed"], item["failed"]) == (done[name]["changed"], done[name]["failed"])
        assert (plan[name] == "skipped") == done[name].get("skipped", False)
        if plan[name] == "in_doubt":
            assert done[name]["outcome"] in ("unknown", "accepted")
            assert done[name]["failed"] == (options.get("in_doubt") != "skip")
        if plan[name] == "differs":
            assert "attributes.cpu (4 asked for, 8 recorded)" in str(item)
    again = plan_of(assets.run(check_mode=True, **options))
    kept = {"create": "keep", "update": "keep"}
    if "skipped" not in plan.values():
        assert {name: again[name] for name in expected} == dict.fromkeys(expected, "keep")
        assert all(again[name] == kept.get(word, word) for name, word in plan.items())


class Approved:
    """A list of two machines with an approved plan."""

    def __init__(self, service, ledger, location: str) -> None:
        self.service, self.location = service, location
        self.bodies = {name: {"name": name, "attributes": {}} for name in ("web01", "web02")}
        found = ledger.find(map(key, self.bodies), with_rows=True).last_rows
        self.rows = {each.name: number for each, number in found.items()}

    def run(self, **options) -> dict:
        return list_task(
            self.location,
            ["web01", "web02"],
            approved=self.bodies,
            rows=self.rows,
            base_url=self.service.url,
            **options,
        )


@pytest.fixture
def approved(service, location, opened) -> Approved:
    return Approved(service, opened(location), location)


def test_one_approval_used_twice_at_once_creates_each_machine_once(approved, service, fork, opened):
    """The guard stands in the statement that begins; also after a person forgot the entry."""
    slow_down(service, 0.2)
    names = ["web01", "web02"]
    given = (approved.location, service.url, names, 0, "", approved.bodies, approved.rows)
    with fork("create_all", *given) as first, fork("create_all", *given) as second:
        results = [*first.result()["results"], *second.result()["results"]]
    outcomes = sorted(item["outcome"] for item in results)
    assert outcomes == ["accepted"] * 2 + ["not_sent"] * 2
    assert len(service.api.conversation) == 2
    edited(opened(approved.location), state="absent", resource=CREATE, name="web01")
    forgotten = approved.run()["results"][0]
    assert (forgotten["outcome"], forgotten["failed"]) == ("not_sent", True)
    assert "An approved plan is good for one effect" in forgotten["msg"]
    assert "make a new plan (--check)" in forgotten["msg"]
    assert len(service.api.conversation) == 2
