# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of tasks: each result equals that of the single task, none is left out, and nothing is
sent twice.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    AttemptFailed,
    InvalidInput,
    Message,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.exchange import Answer
from ansible_collections.infrastructure.services.plugins.module_utils._list import (
    gate,
    scheduler,
    sending,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from support.lists import run_list

TOKEN = "token-of-the-tests"


class Service:
    """Answers by name or id, in this process; each thread has a transport of its own."""

    def __init__(self, fates: dict | None = None, seconds: float = 0.0) -> None:
        """`fates`: what to answer instead of an asset, or what to raise."""
        self.fates, self.seconds = fates or {}, seconds
        self.received: list[str] = []
        self.threads: set[int] = set()
        self.opened = self.closed = self.tokens = 0
        self.token: Answer | None = None  # instead of one
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def connect(self, settings) -> SimpleNamespace:
        with self._lock:
            self.opened += 1
        return SimpleNamespace(send_once=self.send_once, close=self.close, has_sent=True)

    def close(self) -> None:
        self.closed += 1

    def send_once(self, request, timeout) -> Answer:
        if request.url.endswith("/token"):
            self.tokens += 1
            token = {"access_token": f"fetched-token-{self.tokens}", "expires_in": 3600}
            return self.token or Answer(200, {}, json.dumps(token).encode())
        body = json.loads(request.body)
        key = body.get("name") or request.url.rsplit("/", 1)[1]
        with self._lock:
            self.received.append(key)
            self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
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
    return run_list(plural, options, connect=service.connect, **places)


def machines(count: int) -> list[dict]:
    return [{"name": f"vm{number}", "attributes": {"cpu": 4}} for number in range(count)]


def test_all_are_created_once_by_threads_with_their_own_transports():
    service = Service(seconds=0.005)
    result = run(service, VIRTUAL_MACHINES, machines(200), concurrency=20)
    assert sorted(service.received) == sorted(f"vm{number}" for number in range(200))
    assert 4 <= len(service.threads) <= 20
    assert service.opened <= 20
    assert service.closed == service.opened
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
    assert (result["failed"], result["changed"], result["outcome"]) == (True, True, "accepted")
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
    known = "1 not sent, 1 rejected, 1 in doubt, 1 accepted without a usable answer"
    assert f"4 of 50 virtual machines failed ({known}): vm3, vm5, vm7, vm9." in result["msg"]
    assert len(result["ansible_facts"]["compute_virtual_machines"]) == 46


def test_many_failures_are_named_up_to_ten():
    result = run(
        Service({f"vm{number}": Answer(403, {}) for number in range(25)}),
        VIRTUAL_MACHINES,
        machines(30),
    )
    named = ", ".join(f"vm{number}" for number in range(10))
    assert f"25 of 30 virtual machines failed (25 rejected): {named} and 15 more." in result["msg"]


def test_one_unknown_outcome_ends_it_and_the_others_are_reported_as_not_started():
    result = run(Service({"vm3": Answer(502, {})}), VIRTUAL_MACHINES, machines(500), concurrency=4)
    skipped = [item for item in result["results"] if item.get("skipped")]
    assert len(skipped) == result["counts"]["not_begun"] > 250
    assert all(
        (item["outcome"], item["changed"], item["failed"]) == ("not_sent", False, False)
        for item in skipped
    )
    assert "the list stopped at the first in doubt (max_unknown: 1)" in skipped[0]["msg"]
    assert (
        f"{len(skipped)} were not started: the list stopped at the first in doubt" in result["msg"]
    )


def test_a_service_that_is_down_leaves_a_few_in_doubt():
    service = Service({f"vm{number}": Answer(503, {}) for number in range(1000)})
    result = run(service, VIRTUAL_MACHINES, machines(1000), concurrency=64, max_unknown=0)
    assert len(service.received) == result["counts"]["unknown"] <= 5
    assert "nothing got through" in result["msg"]


def test_a_service_that_refuses_everything_for_its_rate_limit_is_given_up_soon():
    service = Service({f"vm{number}": Answer(429, {}) for number in range(1000)})
    result = run(service, VIRTUAL_MACHINES, machines(1000), retries=0)
    assert len(service.received) <= 4 + 5
    assert "nothing got through" in result["msg"]


def test_a_warning_about_the_task_stays_when_all_items_fail_and_no_message_is_told_twice():
    service = Service({"vm0": Answer(403, {}), "vm1": Answer(403, {})})
    result = run(service, VIRTUAL_MACHINES, machines(2), validate_certs=False)
    assert [warning.partition(":")[0] for warning in result["warnings"]] == [
        "validate_certs is false"
    ]
    assert all("validate_certs" not in item["msg"] for item in result["results"])


def test_an_unreachable_host_is_given_up_soon():
    refused = AttemptFailed("connection refused", sent=False)
    service = Service({f"vm{number}": refused for number in range(1000)})
    result = run(service, VIRTUAL_MACHINES, machines(1000), concurrency=64)
    assert len(service.received) <= 5 * 4
    assert (result["outcome"], result["changed"]) == ("not_sent", False)
    assert result["counts"]["not_begun"] > 990


def test_a_refused_request_is_sent_again_as_the_policy_says():
    tried = {}

    def busy(request):
        name = json.loads(request.body)["name"]
        tried[name] = tried.get(name, 0) + 1
        return Answer(429, {"Retry-After": "0"}) if tried[name] < 3 else None

    result = run(Service({"vm1": busy}), VIRTUAL_MACHINES, machines(5))
    assert result["results"][1]["request_attempts"] == 3
    assert result["counts"]["accepted"] == 5


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
        "were not started: the service does not accept the access token (status 401)."
        in result["msg"]
    )


def test_a_permission_that_is_missing_for_one_machine_does_not_end_the_list():
    result = run(Service({"vm3": Answer(403, {})}), VIRTUAL_MACHINES, machines(50), concurrency=4)
    assert (result["counts"]["accepted"], result["counts"]["rejected"]) == (49, 1)


def test_a_list_without_a_token_says_nothing_of_requests():
    """None was sent to the service."""
    service = Service()
    service.token = Answer(400, {}, b'{"error": "invalid_client"}')
    result = run(
        service,
        VIRTUAL_MACHINES,
        machines(50),
        auth_url="http://127.0.0.1:9/token",
        client_id="client",
        client_secret="secret-of-the-tests",
    )
    assert (
        "were not started: the last 5 failed, and nothing got through meanwhile." in result["msg"]
    )
    assert "invalid_client" in result["results"][0]["msg"]
    assert (service.received, result["outcome"]) == ([], "not_sent")


def test_check_mode_is_the_plan_and_opens_nothing():
    service = Service()
    result = run(service, VIRTUAL_MACHINES, machines(3), check_mode=True)
    assert (service.opened, service.received) == (0, [])
    assert [item["plan"] for item in result["results"]] == ["create"] * 3
    assert (result["changed"], result["outcome"], result["counts"]["create"]) == (
        True,
        "not_sent",
        3,
    )
    assert result["results"][0]["asset"]["id"] is None
    assert "not_listed" not in result


def test_roles_that_already_match_are_kept():
    role = {
        "id": "role-1",
        "attributes": {"login": True},
        "current": {"id": "role-1", "attributes": {"login": True}},
    }
    service = Service()
    result = run(service, APPLICATION_ROLES, [role, {**role, "id": "role-2", "current": None}])
    assert service.received == ["role-2"]
    assert [(item["item"], item["changed"]) for item in result["results"]] == [
        ("role-1", False),
        ("role-2", True),
    ]
    assert "plan" not in result["results"][0]
    planned = run(service, APPLICATION_ROLES, [role], check_mode=True)
    assert planned["results"][0]["plan"] == "keep"


def test_an_item_that_cannot_be_planned_is_a_fault_and_nothing_is_sent():
    service = Service()
    roles = [
        {"id": f"role-{number}", "description": "d", "send": "complete"} for number in range(3)
    ]
    with pytest.raises(
        InvalidInput,
        match=r"3 items are invalid.*\[1\] \(role-1\), \[2\] \(role-2\): send: complete",
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
    assert [item["asset"]["attributes"] for item in result["results"]] == [
        {"cpu": 4, "team": "web", "subnet": {"dns": "a", "mask": "b"}, "zone": 1},
        {"cpu": 8, "team": "web", "subnet": {"dns": "c", "mask": "b"}, "zone": 1},
    ]


@pytest.mark.parametrize(
    ("defaults", "said"),
    [
        ({"attributes": {"login": True}}, "defaults: attributes.login: there is no such option"),
        ({"attributes": {"cpu": "four"}}, "defaults: attributes.cpu: must be"),
        ({"atributes": {}}, "defaults: atributes: there is no such option (did you mean"),
        (
            {"attributes": {"cpu": "four"}, "naem": "a"},
            "did you mean name?); attributes.cpu: must be",
        ),
    ],
)
def test_a_fault_in_the_defaults_is_told_once_and_not_for_each_item(defaults, said):
    service = Service()
    with pytest.raises(InvalidInput) as raised:
        run(service, VIRTUAL_MACHINES, [{"name": "vm0"}, {"name": "vm1"}], defaults=defaults)
    assert said in raised.value.msg
    assert "vm0" not in raised.value.msg
    assert service.received == []


def test_defaults_do_not_fill_what_is_sent_or_compared_verbatim():
    """There a null is a value; what an item does not give, or gives as null, comes from the
    defaults.
    """
    defaults = {"body": {"a": 1, "b": {"c": 2}}, "current": {"tenant": "t", "region": "r"}}
    given = [
        {"id": "r0", "body": {"a": None, "b": {"c": None}}, "current": {"tenant": None}},
        {"id": "r1"},
        {"id": "r2", "body": None},
    ]
    service, bodies = Service(), []
    service.fates = dict.fromkeys(
        ("r0", "r1", "r2"), lambda request: bodies.append(json.loads(request.body))
    )
    result = run(service, APPLICATION_ROLES, given, concurrency=1, defaults=defaults)
    assert bodies == [given[0]["body"], defaults["body"], defaults["body"]]
    assert [item["before"] for item in result["diff"]] == [
        given[0]["current"],
        *[{"region": "r"}] * 2,
    ]


def test_fields_are_picked_for_results_and_facts():
    result = run(
        Service(), VIRTUAL_MACHINES, machines(2), asset_fields=["id", "attributes.cpu", "no.such"]
    )
    assert result["results"][1]["asset"] == {
        "id": result["results"][1]["asset"]["id"],
        "attributes": {"cpu": 4},
    }
    assert (
        result["ansible_facts"]["compute_virtual_machines"]["vm1"] == result["results"][1]["asset"]
    )


def test_a_result_too_large_for_awx_raises_a_warning():
    large = [{"name": f"vm{number}", "attributes": {"team": "x" * 2000}} for number in range(200)]
    result = run(Service(), VIRTUAL_MACHINES, large)
    assert any("asset_fields" in warning for warning in result["warnings"])
    assert run(Service(), VIRTUAL_MACHINES, large, asset_fields=["id"])["warnings"] == []


def test_machines_that_come_back_with_one_id_are_named():
    """Whatever fields are asked for; those that have an id of their own, or none, are not."""
    fates = {
        f"vm{number}": Answer(201, {}, b'{"id": "vm-0", "name": "vm%d"}' % number)
        for number in range(12)
    }
    fates["vm12"] = Answer(201, {}, b'{"id": ["vm-0"]}')
    fates["vm13"] = fates["vm14"] = Answer(201, {}, b"{}")
    result = run(Service(fates), VIRTUAL_MACHINES, machines(18), asset_fields=["name"])
    names = ", ".join(f"vm{number}" for number in range(10))
    (warning,) = result["warnings"]
    assert warning.startswith(f"virtual machines {names} and 2 more have the same id, vm-0:")
    assert result["results"][0]["asset"] == {"name": "vm0"}
    assert all("id" not in item for item in result["results"])


def test_the_answer_of_another_machine_is_warned_of_by_name():
    result = run(
        Service({"vm1": Answer(201, {}, b'{"id": "x", "name": "vm2"}')}),
        VIRTUAL_MACHINES,
        machines(3),
    )
    (warning,) = result["warnings"]
    assert warning.startswith(
        "virtual machine vm1: these fields came back different from what was sent: name ("
    )
    assert '"vm1" sent, "vm2" came back' in warning


def test_an_early_end_is_reported_for_each_item(monkeypatch):
    monkeypatch.setattr(scheduler, "_POLL_INTERVAL", 0.1)
    service, lines = Service(seconds=0.05), []
    result = run(
        service,
        VIRTUAL_MACHINES,
        machines(1000),
        concurrency=4,
        progress=lambda *numbers: lines.append(numbers),
        watch=lambda: "the task received SIGTERM" if lines else "",
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


def test_progress_tells_items_with_nothing_to_send_apart(tmp_path):
    location, lines = str(tmp_path / "ledger.db"), []
    shared = dict(connect=Service().connect, location=location)
    for count in (2, 3):
        options = {"base_url": "https://service.example", "virtual_machines": machines(count)}
        run_list(VIRTUAL_MACHINES, options, progress=lambda *some: lines.append(some), **shared)
    total, settled, ended, *_others = lines[-1]
    assert (total, settled, len(ended)) == (3, 2, 1)


def test_items_that_do_not_finish_in_time_are_in_doubt(monkeypatch):
    end = gate.Gate.end
    monkeypatch.setattr(sending, "GRACE", 0.5)
    monkeypatch.setattr(scheduler, "_POLL_INTERVAL", 0.1)
    silent, ended = threading.Event(), []
    monkeypatch.setattr(gate.Gate, "end", lambda *item: end(*item) or ended.append(item))
    service = Service({"vm2": lambda request: silent.wait(60) and None})
    result = run(
        service, VIRTUAL_MACHINES, machines(3), watch=lambda: "Ctrl-C" if len(ended) == 2 else ""
    )
    silent.set()
    assert [item["outcome"] for item in result["results"]] == ["accepted", "accepted", "unknown"]
    assert "interrupted (Ctrl-C)" in result["results"][2]["msg"]
    assert (result["failed"], result["counts"]["unknown"]) == (True, 1)


class LedgerOfTests:
    """Has no entry, and records nothing."""

    lost, warnings = "", ()

    def __init__(self) -> None:
        self.given_up: list[tuple[str, str]] = []
        self.is_closed = False

    def look_up(self, tasks):
        return [task.planned() for task in tasks]

    def record_intent(self, planned):
        return nullcontext(SimpleNamespace(planned=planned, intent=True, record=self.record))

    def record(self, result):
        return result

    def with_next_step(self, result, _task, _state):
        return result

    def give_up(self, results):
        self.given_up += [(task.wanted.key, result.outcome) for task, result in results]

    def show_waiting(self):
        pass

    def close(self):
        self.is_closed = True


def test_an_unexpected_error_leaves_the_ledger_open_for_running_threads_and_starts_no_item(
    monkeypatch,
):
    monkeypatch.setattr(scheduler, "_POLL_INTERVAL", 0.05)
    answered, recorded, ledger = threading.Event(), threading.Event(), LedgerOfTests()
    is_closed_at_record = []

    def record(result):
        is_closed_at_record.append(ledger.is_closed)
        recorded.set()
        return result

    def fail(*_status):
        raise ZeroDivisionError

    ledger.record = record
    service = Service({"vm0": lambda request: answered.wait(60) and Answer(201, {}, b"{}")})
    with pytest.raises(ZeroDivisionError):
        run(service, VIRTUAL_MACHINES, machines(9), ledger=ledger, concurrency=1, progress=fail)
    answered.set()
    assert recorded.wait(60)
    assert is_closed_at_record == [False]
    time.sleep(0.2)
    assert len(service.received) == 1


def test_an_answer_that_could_not_be_recorded_is_reported_as_such():
    """The answer was usable; and the message of an item may be followed by a further sentence."""

    class Full(LedgerOfTests):
        def record(self, result):
            said = Message("it could not be recorded: disk full")
            return replace(result, failed=True, msg=said)

    result = run(Service({"vm1": Answer(204, {})}), VIRTUAL_MACHINES, machines(4), ledger=Full())
    assert "(3 accepted but not recorded, 1 accepted without a usable answer): " in result["msg"]
    assert "See results for the known effect of each, and the next step." in result["msg"]
    assert result["results"][0]["msg"].endswith("disk full")


def test_the_intent_of_an_item_that_was_late_and_sent_nothing_is_withdrawn(monkeypatch):
    """Here it waits for a token, whose endpoint does not answer."""
    monkeypatch.setattr(sending, "GRACE", 0.1)
    monkeypatch.setattr(scheduler, "_POLL_INTERVAL", 0.05)
    silent, asked, ledger = threading.Event(), threading.Event(), LedgerOfTests()

    class Silent(Service):
        def send_once(self, request, timeout) -> Answer:
            asked.set()
            silent.wait(60)
            return super().send_once(request, timeout)

    client = {"auth_url": "https://s/token", "client_id": "c", "client_secret": "s3cret"}
    result = run(
        Silent(),
        VIRTUAL_MACHINES,
        machines(1),
        ledger=ledger,
        watch=lambda: "Ctrl-C" if asked.is_set() else "",
        **client,
    )
    silent.set()
    assert result["results"][0]["outcome"] == "not_sent"
    assert ledger.given_up == [("vm0", "not_sent")]


def test_an_empty_list_is_not_a_failure():
    result = run(Service(), VIRTUAL_MACHINES, [])
    assert (result["changed"], result["outcome"], result["results"]) == (False, "not_sent", [])


def test_a_list_that_is_late_before_it_begins_sends_nothing():
    """The keyword timeout may expire while the ledger is opened."""
    service = Service()
    result = run(
        service,
        VIRTUAL_MACHINES,
        machines(40),
        watch=lambda: "the keyword timeout (3 seconds) expired",
    )
    assert (service.received, result["counts"]["not_begun"], result["failed"]) == ([], 40, True)


def test_a_list_opens_no_more_connections_than_the_system_grants():
    """Each open one is used again, so that few file descriptors make a list slower and do not end
    it.
    """
    service, allowed, lock = Service(seconds=0.005), 6, threading.Lock()

    class Transport:
        has_sent = is_open = False

        def send_once(self, request, timeout):
            with lock:
                if not self.is_open and service.opened >= allowed:
                    raise AttemptFailed("Too many open files", sent=False)
                service.opened += not self.is_open
                self.is_open = True
            return service.send_once(request, timeout)

        def close(self):
            pass

    service.connect = lambda settings: Transport()
    result = run(service, VIRTUAL_MACHINES, machines(150), concurrency=64)
    assert (result["counts"]["accepted"], len(service.received)) == (150, 150)
