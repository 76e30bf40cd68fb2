"""A list of tasks: each result equals that of the single task, none is left out, and nothing is
sent twice.
"""

from __future__ import annotations

import itertools
import json
import threading
import time

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    AttemptFailed,
    InvalidInput,
    Message,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http import Answer
from ansible_collections.infrastructure.services.plugins.module_utils._task.journal import NoLedger
from ansible_collections.infrastructure.services.plugins.module_utils._values import prune
from support import APPLICATION_ROLES, VIRTUAL_MACHINES
from support.lists import run_list


class Service:
    """Answers by name or id, in this process."""

    def __init__(self, fates: dict | None = None, seconds: float = 0.0) -> None:
        """`fates`: what to answer instead of an asset, or what to raise."""
        self.fates, self.seconds = fates or {}, seconds
        self.received: list[str] = []
        self.in_flight = self.peak = 0
        self.tokens = 0
        self.token: Answer | None = None  # instead of one
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def send_once(self, _settings, request, _timeout) -> Answer:
        if request.url.endswith("/token"):
            self.tokens += 1
            token = {"access_token": f"fetched-token-{self.tokens}", "expires_in": 3600}
            return self.token or Answer(200, {}, json.dumps(token).encode())
        body = json.loads(request.body)
        key = body.get("name") or request.url.rsplit("/", 1)[1]
        with self._lock:
            self.received.append(key)
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
        request.may_send()
        time.sleep(self.seconds)
        with self._lock:
            self.in_flight -= 1
        fate = self.fates.get(key)
        if callable(fate):
            fate = fate(request)
        if isinstance(fate, BaseException):
            raise fate
        if fate is not None:
            return fate
        asset = {"id": f"vm-{next(self._numbers)}", "name": key, "tenant": "t", **body}
        return Answer(201, {}, json.dumps(asset).encode())


def run(service: Service, plural, given: list, **how) -> dict:
    """Return the result of a list."""
    places = {
        name: how.pop(name) for name in ("check_mode", "watch", "progress", "ledger") if name in how
    }
    options = {"base_url": "http://127.0.0.1:9", plural.option: given, **how}
    return run_list(plural, options, send_once=service.send_once, **places)


def machines(count: int) -> list[dict]:
    return [{"name": f"vm{number}", "attributes": {"cpu": 4}} for number in range(count)]


def test_all_are_created_once_several_at_a_time():
    service = Service(seconds=0.005)
    result = run(service, VIRTUAL_MACHINES, machines(200), concurrency=20)
    assert sorted(service.received) == sorted(f"vm{number}" for number in range(200))
    assert 4 <= service.peak <= 20
    assert [item["item"] for item in result["results"]] == [f"vm{number}" for number in range(200)]
    assert (result["changed"], result["outcome"], result.get("failed", False)) == (
        True,
        "accepted",
        False,
    )
    assert result["counts"]["accepted"] == result["counts"]["changed"] == 200
    assert "msg" not in result
    facts = result["ansible_facts"]["compute_virtual_machines"]
    assert all(facts[item["item"]] == item["asset"] for item in result["results"])
    assert result["results"][7]["asset"]["name"] == "vm7"
    assert len(result["diff"]) == 200


def test_each_result_has_the_same_shape_whatever_happens_to_the_others():
    service = Service(
        {
            "vm3": Answer(403, {}),
            "vm5": Answer(503, {}),
            "vm7": AttemptFailed("connection refused", sent=False, hopeless=True),
            "vm9": Answer(204, {}),
        }
    )
    result = run(service, VIRTUAL_MACHINES, machines(50), max_unknown=0, concurrency=4)
    by_name = {item["item"]: item for item in result["results"]}
    assert (result["failed"], result["changed"], result["outcome"]) == (True, True, "unknown")
    assert {name: by_name[name]["outcome"] for name in ("vm3", "vm5", "vm7", "vm9", "vm1")} == {
        "vm3": "rejected",
        "vm5": "unknown",
        "vm7": "not_sent",
        "vm9": "accepted",
        "vm1": "accepted",
    }
    for item in result["results"]:
        assert {"item", "changed", "failed", "outcome", "status", "request_attempts"} <= set(item)
        assert item["failed"] == ("msg" in item)
    assert by_name["vm3"]["status"] == 403
    assert by_name["vm9"]["changed"] is True
    known = "1 not sent, 1 rejected, 1 in doubt, 1 accepted without a usable answer or not recorded"
    assert f"4 of 50 virtual machines failed ({known}): vm3, vm5, vm7, vm9." in result["msg"]
    assert len(result["ansible_facts"]["compute_virtual_machines"]) == 46


def test_one_unknown_outcome_ends_it_and_the_others_are_reported_as_not_started():
    result = run(Service({"vm3": Answer(502, {})}), VIRTUAL_MACHINES, machines(500), concurrency=4)
    skipped = [item for item in result["results"] if item.get("skipped")]
    assert len(skipped) == result["counts"]["not_begun"] > 250
    assert all(
        (item["outcome"], item["changed"], item["failed"]) == ("not_sent", False, False)
        for item in skipped
    )
    assert "the list stopped after 1 in doubt (max_unknown: 1)" in skipped[0]["msg"]
    assert f"{len(skipped)} not started: the list stopped after 1 in doubt" in result["msg"]


def test_one_token_serves_all_and_is_replaced_once_when_refused():
    seen = []

    def expired(request):
        seen.append(request.headers["Authorization"])
        return Answer(401, {}) if request.headers["Authorization"].endswith("-1") else None

    service = Service({f"vm{number}": expired for number in range(50)}, seconds=0.002)
    result = run(
        service,
        VIRTUAL_MACHINES,
        machines(50),
        concurrency=50,
        auth_url="http://127.0.0.1:9/token",
        client_id="client",
        client_secret="secret-of-the-tests",
    )
    assert result["counts"]["accepted"] == 50
    assert service.tokens == 2
    assert "fetched-token" not in json.dumps(result)


@pytest.mark.parametrize("renewable", [True, False], ids=["refused again", "cannot be renewed"])
def test_a_token_that_is_refused_for_good_ends_the_list(renewable):
    service = Service({f"vm{number}": Answer(401, {}) for number in range(300)})
    auth = dict(
        access_token=None,
        auth_url="http://127.0.0.1:9/token",
        client_id="me",
        client_secret="secret-of-me",
    )
    result = run(
        service, VIRTUAL_MACHINES, machines(300), concurrency=4, **(auth if renewable else {})
    )
    counts = result["counts"]
    assert len(service.received) <= 16
    assert (counts["accepted"], counts["unknown"], counts["not_begun"]) == (
        0,
        0,
        300 - counts["failed"],
    )
    assert (
        "not started: the service does not accept the access token (status 401)." in result["msg"]
    )


def test_check_mode_is_the_plan_and_opens_nothing():
    service = Service()
    result = run(service, VIRTUAL_MACHINES, machines(3), check_mode=True)
    assert (service.tokens, service.received) == (0, [])
    assert [item["plan"] for item in result["results"]] == ["create"] * 3
    assert (result["changed"], result["outcome"], result["counts"]["create"]) == (
        True,
        "not_sent",
        3,
    )
    assert result["results"][0]["asset"]["id"] is None
    assert "not_listed" not in result


def test_an_item_that_cannot_be_planned_is_a_fault_and_nothing_is_sent():
    service = Service()
    roles = [
        {"id": f"role-{number}", "description": "d", "send": "complete"} for number in range(3)
    ]
    with pytest.raises(
        InvalidInput,
        match=r"3 invalid items.*\[1\] \(role-1\), \[2\] \(role-2\): send: complete",
    ):
        run(service, APPLICATION_ROLES, roles)
    assert service.received == []


def test_defaults_are_merged_into_each_item_whose_own_values_win():
    defaults = {"attributes": {"cpu": 4, "team": "web", "subnet": {"dns": "a", "mask": "b"}}}
    defaults["extra_attributes"] = {"zone": 1}
    given = [
        {"name": "vm0"},
        {"name": "vm1", "attributes": {"cpu": 8, "team": None, "subnet": {"dns": "c"}}},
    ]
    result = run(Service(), VIRTUAL_MACHINES, given, check_mode=True, defaults=defaults)
    names = ("cpu", "team", "subnet", "zone")
    found = [item["asset"]["attributes"] for item in result["results"]]
    assert [prune({name: attributes[name] for name in names}) for attributes in found] == [
        {"cpu": 4, "team": "web", "subnet": {"dns": "a", "mask": "b"}, "zone": 1},
        {"cpu": 8, "team": "web", "subnet": {"dns": "c", "mask": "b"}, "zone": 1},
    ]


def test_a_result_too_large_for_awx_raises_a_warning():
    large = [{"name": f"vm{number}", "attributes": {"team": "x" * 2000}} for number in range(200)]
    result = run(Service(), VIRTUAL_MACHINES, large)
    assert any("asset_fields" in warning for warning in result["warnings"])
    assert run(Service(), VIRTUAL_MACHINES, large, asset_fields=["id"])["warnings"] == []


def test_an_early_end_is_reported_for_each_item():
    service, lines = Service(seconds=0.05), []
    result = run(
        service,
        VIRTUAL_MACHINES,
        machines(1000),
        concurrency=4,
        progress=lambda *numbers: lines.append(numbers),
        watch=lambda: "the task received SIGTERM" if len(lines) > 1 else "",
    )
    counts = result["counts"]
    assert counts["accepted"] + counts["not_begun"] == 1000
    assert counts["accepted"] == len(service.received)
    assert ": the task received SIGTERM." in result["msg"]
    assert lines
    for total, settled, ended, in_flight, _is_ending in lines:
        assert (total, settled) == (1000, 0)
        assert len(ended) + in_flight <= 1000
    assert lines[-1][-1], "the last ones wait for what is in flight"


def test_an_unexpected_error_in_a_thread_ends_the_list_and_its_item_is_in_doubt():
    service = Service({"vm6": ZeroDivisionError()}, seconds=0.02)
    result = run(service, VIRTUAL_MACHINES, machines(300), concurrency=4)
    by_name = {item["item"]: item for item in result["results"]}
    assert by_name["vm6"]["outcome"] == "unknown"
    assert "an unexpected ZeroDivisionError in this collection" in by_name["vm6"]["msg"]
    assert result["counts"]["not_begun"] > 250


def test_an_answer_that_could_not_be_recorded_is_reported_as_such():
    """The answer was usable; and the message of an item may be followed by a further sentence."""

    class Full(NoLedger):
        def beginning(self, task):
            return task

        def outcome(self, begun, task, result):
            return task

        def finished(self, written, task, result, had_effect):
            said = Message("it could not be recorded: disk full")
            return result.but(failed=True, msg=said)

    result = run(Service({"vm1": Answer(204, {})}), VIRTUAL_MACHINES, machines(4), ledger=Full())
    assert "(4 accepted without a usable answer or not recorded): " in result["msg"]
    assert "See results for the known effect of each, and the next step." in result["msg"]
    assert result["results"][0]["msg"].endswith("disk full")
