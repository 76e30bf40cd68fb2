# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `ledger_entry` does to an entry, and what the next task then does: on both databases."""

from __future__ import annotations

import json
import threading

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRY,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    Editor,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.entries import (
    ABSENT,
    DONE,
    INTENT,
    STATES,
    UNKNOWN,
    Entry,
    Key,
    LedgerError,
)
from ledger.entries import history, put
from ledger.tasks import key, task
from support import CREATE, RESOURCES, UPDATE
from support.waiting import until, waiting
from support.wire import answer, running

URL = "https://s"
KEYS = {CREATE: Key(URL, CREATE, "web01"), UPDATE: Key(URL, UPDATE, "role-0001")}
OPTION = {CREATE: "name", UPDATE: "id"}
WHOLE = {
    **dict.fromkeys(ENVELOPE, "text"),
    "id": "role-0001",
    "name": "web01",
    "attributes": {"cpu": 4},
}
SENT = {"name": "web01", "attributes": {"cpu": 4}}
SEEN, DOUBTFUL, FINISHED = (
    Entry(INTENT, SENT, {}),
    Entry(UNKNOWN, SENT, {}),
    Entry(DONE, SENT, WHOLE),
)
FORGET, ADOPT = {"state": "absent"}, {"asset": WHOLE}


@pytest.fixture(params=RESOURCES)
def resource(request) -> str:
    return request.param


@pytest.fixture
def edit(location, opened, resource):
    """Return a function that runs the module's task."""
    ledger = opened(location)

    def edit(check_mode: bool = False, secrets: frozenset = frozenset(), **options) -> dict:
        least = {
            "ledger": location,
            "base_url": URL,
            "resource": resource,
            OPTION[resource]: KEYS[resource].name,
        }
        params = validate(LEDGER_ENTRY, {**least, **options}).valid()
        known = Secrets()
        for secret in secrets:
            known.mask(secret)
        return Editor(ledger, known, check_mode, "this run").edit_entry(params)

    edit.ledger, edit.key, edit.location = ledger, KEYS[resource], location
    return edit


def test_the_title_of_a_diff_has_no_control_characters(edit):
    diff = edit(**{OPTION[edit.key.resource]: "a\x1b[31m"}, state="absent")["diff"]
    assert diff["before_header"] == f"ledger entry of {edit.key.resource} a [31m"
    assert diff["after_header"] == diff["before_header"]


@pytest.mark.parametrize("state", [None, *STATES])
@pytest.mark.parametrize("check_mode", [True, False])
def test_the_given_asset_is_recorded(edit, state, check_mode):
    before = (
        Entry(state, SENT, {"id": WHOLE["id"]} if state == DONE else {}, "before")
        if state
        else None
    )
    put(edit.ledger, edit.key, before)
    before = edit.ledger.get(edit.key)
    result = edit(check_mode, asset=WHOLE)
    assert (result["changed"], result["outcome"]) == (True, "not_sent")
    assert (result["entry_state"], result["asset"]) == (DONE, WHOLE)
    confirmed = state not in (None, DONE)
    assert result["sent"] == (SENT if confirmed else {"name": "web01", "attributes": {"cpu": 4}})
    assert result["diff"]["before"].get("state") == state
    assert result["diff"]["after"] == {"state": DONE, "sent": result["sent"], "asset": WHOLE}
    after = edit.ledger.get(edit.key)
    assert after == before if check_mode else (after.state, after.asset) == (DONE, WHOLE)


@pytest.mark.parametrize("state", [INTENT, UNKNOWN, "accepted"])
@pytest.mark.parametrize("check_mode", [True, False])
def test_a_machine_that_is_settled_by_its_id_keeps_what_was_sent(edit, resource, state, check_mode):
    sent = {"name": "web01", "attributes": {"cpu": 4, "ip": "192.0.2.10"}}
    put(edit.ledger, edit.key, Entry(state, sent, {}))
    given = {"id": "new" if resource == CREATE else edit.key.name, "attributes": {"cpu": 8}}
    (warning,) = edit(True, asset=given)["warnings"]
    assert "attributes.ip recorded as sent" in warning
    assert "attributes.cpu" not in warning
    del given["attributes"]
    result = edit(check_mode, asset=given)
    assert result["asset"] == {**dict.fromkeys(ENVELOPE), **sent, **given}
    assert result["sent"] == sent
    taken = (
        "attributes.cpu, attributes.ip"
        if resource == CREATE
        else "name, attributes.cpu, attributes.ip"
    )
    told = f"{resource} {edit.key.name}: {taken} recorded as sent, since asset has no such field."
    assert result["warnings"] == [told]
    if not check_mode:
        again = edit(asset=given)
        assert (again["changed"], "warnings" in again, again["asset"]) == (
            False,
            False,
            result["asset"],
        )


@pytest.mark.parametrize("attributes", [{"cpu": None}, None])
def test_a_null_is_not_left_out(edit, attributes):
    put(edit.ledger, edit.key, Entry(UNKNOWN, SENT, {}))
    result = edit(asset={**WHOLE, "attributes": attributes})
    assert (result["asset"]["attributes"], "warnings" in result) == (attributes, False)


TYPED = {
    CREATE: (
        {
            "cpu": "4",
            "volumes": [{"name": 1, "size_gb": "2.0", "more": "x"}],
            "subnet": {"dns": 1, "more": "4"},
            "last_reboot_date": "2026-01-02 03:04:05",
            "status": None,
            "new": "7",
        },
        {
            "cpu": 4,
            "volumes": [{"name": "1", "size_gb": 2, "more": "x"}],
            "subnet": {"dns": "1", "more": "4"},
            "last_reboot_date": "2026-01-02T03:04:05Z",
            "status": None,
            "new": "7",
        },
        {"cpu": "many", "volumes": [{"size_gb": "big"}]},
        "; ".join(
            f"asset.attributes.{problem}"
            for problem in (
                'cpu: must be a number, not "many"',
                'volumes[0].size_gb: must be a number, not "big"',
            )
        ),
    ),
    UPDATE: (
        {"login": "yes", "new": [1]},
        {"login": True, "new": [1]},
        {"login": "maybe"},
        'asset.attributes.login: must be true or false, not "maybe"',
    ),
}


def test_attributes_are_typed_like_those_of_the_resource(edit, resource):
    given, expected, wrong, problem = TYPED[resource]
    result = edit(asset={**WHOLE, "attributes": given})
    assert result["asset"]["attributes"] == result["sent"]["attributes"] == expected
    with pytest.raises(ServicesError) as error:
        edit(asset={**WHOLE, "attributes": wrong})
    assert error.value.msg == problem
    assert edit.ledger.get(edit.key).asset["attributes"] == expected


def test_what_is_recorded_can_be_given_back_whatever_its_types(edit):
    asset = {**WHOLE, "attributes": {"cpu": "many", "login": "maybe", "ip": 4}}
    put(edit.ledger, edit.key, Entry(DONE, SENT, asset))
    assert edit(asset=asset)["changed"] is False


def test_the_same_asset_again_changes_nothing(edit):
    edit(asset=WHOLE)
    before = edit.ledger.get(edit.key)
    result = edit(asset=WHOLE)
    assert (result["changed"], result["diff"]["before"]) == (False, result["diff"]["after"])
    assert edit.ledger.get(edit.key) == before


def test_fields_that_are_not_given_are_null(edit, resource):
    option = OPTION[resource]
    result = edit(asset={"id": WHOLE["id"], "region": "north"})
    expected = {
        **dict.fromkeys(ENVELOPE),
        "id": WHOLE["id"],
        "region": "north",
        option: KEYS[resource].name,
    }
    assert result["asset"] == expected
    assert edit.ledger.get(edit.key).asset == expected


@pytest.mark.parametrize("check_mode", [True, False])
def test_an_entry_is_forgotten(edit, check_mode):
    assert edit(check_mode, state="absent")["changed"] is False
    put(edit.ledger, edit.key, Entry(INTENT, SENT, {}))
    result = edit(check_mode, state="absent")
    assert "warnings" not in result
    assert (result["changed"], result["entry_state"], result["asset"]) == (True, "absent", None)
    assert (result["diff"]["before"]["state"], result["diff"]["after"]) == (INTENT, {})
    assert (edit.ledger.get(edit.key) is None) is not check_mode


@pytest.mark.parametrize("check_mode", [True, False])
def test_forgetting_an_entry_that_does_not_exist_raises_a_warning(edit, check_mode):
    put(edit.ledger, edit.key._replace(name="other"), Entry(DONE, SENT, WHOLE))
    result = edit(check_mode, state="absent")
    told = f"no entry of this name for {URL} in {edit.ledger.where}; nothing was removed."
    assert result["warnings"] == [f"{edit.key.resource} {edit.key.name}: {told}"]
    assert result["changed"] is False


def test_forgetting_creates_no_ledger_and_says_where_it_looked(ansible_once, service, opened):
    forget = f"""
- name: Forget
  infrastructure.services.ledger_entry:
    resource: {CREATE}
    name: web01
    state: absent
    ledger: here.db
"""
    result = ansible_once.tasks(forget).ok().result("Forget")
    path = ansible_once.directory / "here.db"
    assert (result["changed"], result["warnings"]) == (
        False,
        [
            f"{CREATE} web01: no entry of this name for {service.url} in {path}; nothing was removed."
        ],
    )
    assert not path.exists()
    put(opened(str(path)), key(service), Entry(INTENT, SENT, {}))
    run = ansible_once.tasks(forget + forget).ok()
    assert [line["result"]["changed"] for line in run.results] == [True, False]


@pytest.mark.parametrize("other", ["other", "", None])
def test_an_asset_with_another_name_is_refused(edit, resource, other):
    option = OPTION[resource]
    assert edit(asset={"id": WHOLE["id"], option: KEYS[resource].name})["changed"] is True
    said = f"^asset: its {option} is {other!r}, but the entry is for {edit.key.name}"
    with pytest.raises(ServicesError, match=said):
        edit(asset={option: other})


def test_each_edit_is_in_the_history(edit):
    put(edit.ledger, edit.key, Entry(UNKNOWN, SENT, {}, run="before"))
    edit(asset=WHOLE)
    edit(asset=WHOLE)
    edit(state="absent")
    rows = [ended for key, ended in history(edit.ledger) if key == edit.key]
    assert [(row.from_state, row.to_state, row.run, row.outcome) for row in rows] == [
        (UNKNOWN, DONE, "this run", "not_sent"),
        (DONE, ABSENT, "this run", "not_sent"),
    ]
    assert all("@" in row.by for row in rows)


@pytest.mark.parametrize(
    ("before", "wanted", "who"),
    [
        (DOUBTFUL, FORGET, "another task changed it"),
        (FINISHED, FORGET, "another task changed it"),
        (None, {"asset": {**WHOLE, "region": "other"}}, "another task changed it"),
        (SEEN, FORGET, "the task that was working on it finished"),
    ],
)
def test_an_edit_that_lost_a_race_is_reported(edit, opened, monkeypatch, before, wanted, who):
    """Without a lock that makes one wait for the other, as behind a pooler."""
    real = edit.ledger.write

    def late(changes, kind):
        put(opened(edit.location), edit.key, FINISHED)
        return real(changes, kind)

    put(edit.ledger, edit.key, before)
    monkeypatch.setattr(edit.ledger, "write", late)
    said = f"{edit.key.name}: {who} meanwhile, and its entry is now done. Look at it again"
    with pytest.raises(LedgerError, match=said):
        edit(**wanted)
    assert edit.ledger.get(edit.key).state == DONE


@pytest.fixture
def meanwhile(edit, monkeypatch):
    """Let another task leave this entry while ours waits for the lock."""

    def meanwhile(entry: Entry | None) -> None:
        real = edit.ledger.lock

        def lock(key, wait):
            put(edit.ledger, key, entry)
            return real(key, wait)

        monkeypatch.setattr(edit.ledger, "lock", lock)

    return meanwhile


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (SEEN, FINISHED, FORGET),
        (SEEN, FINISHED, {"asset": {**WHOLE, "region": "other"}}),
        (SEEN, DOUBTFUL, FORGET),
        (SEEN, DOUBTFUL, ADOPT),
        (SEEN, SEEN, FORGET),
        (SEEN, None, ADOPT),
    ],
)
def test_an_entry_that_changed_while_it_waited_is_not_touched(
    edit, meanwhile, before, after, wanted
):
    put(edit.ledger, edit.key, before)
    meanwhile(after)
    state = after.state if after else ABSENT
    with pytest.raises(LedgerError) as error:
        edit(**wanted)
    begin, rest = error.value.msg.split(" meanwhile, ")
    began = " another task began to work on it"
    assert begin == f"{edit.key.resource} {edit.key.name}:" + (
        began if state == INTENT else " the task that was working on it finished"
    )
    assert rest.startswith(f"and its entry is now {state}. Look at it again")
    assert "infrastructure.services.ledger_info" in rest
    found = edit.ledger.get(edit.key)
    assert (found.state if found else ABSENT) == state


@pytest.mark.parametrize(("after", "wanted"), [(None, FORGET), (FINISHED, ADOPT)])
def test_an_entry_that_became_as_wanted_while_it_waited_is_left(edit, meanwhile, after, wanted):
    put(edit.ledger, edit.key, SEEN)
    meanwhile(after)
    assert edit(**wanted)["changed"] is False


def test_a_request_in_flight_is_not_forgotten(ansible_once, opened, fork):
    """The entry is in doubt when it is listed, and done when `ledger_entry` gets the lock."""
    path, may_answer = str(ansible_once.directory / "ledger.db"), threading.Event()

    def slow(sent) -> bytes:
        assert may_answer.wait(60)
        return answer(201, {"id": "id-1", "name": "web01", "attributes": {}})

    ledger = opened(path)
    with running(slow) as service, fork("create", path, service.url, "web01") as process:
        until(lambda: service.sent)
        task = {
            "name": "Forget",
            "infrastructure.services.ledger_entry": {
                "ledger": path,
                "base_url": service.url,
                "resource": CREATE,
                "name": "web01",
                "state": "absent",
            },
        }
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [task]}
        with ansible_once.interrupted(json.dumps([play])) as run:
            until(lambda: waiting(path) == 1)
            may_answer.set()
            done = run.end(60)
        assert done.rc != 0
        assert "finished meanwhile, and its entry is now done" in done.output
        assert (ledger.get(key(service)).state, process.result()["outcome"]) == (DONE, "accepted")


@pytest.mark.parametrize(
    "options",
    [
        {"asset": {}},
        {"asset": {"attributes": "text"}},
        {"asset": {"attributes": []}},
        {"asset": {"attributes": {"cpu": float("nan")}}},
        {"asset": {"name": "\ud800"}},
        {"base_url": "https://user:password@s", "state": "absent"},
        {"base_url": "s", "state": "absent"},
        {"name": " ", "id": " ", "state": "absent"},
        {"name": None, "id": None, "state": "absent"},
        {"asset": None},
    ],
)
def test_values_that_cannot_be_recorded_are_refused(edit, resource, options):
    other = OPTION[UPDATE if resource == CREATE else CREATE]
    with pytest.raises(ServicesError):
        edit(**{name: value for name, value in options.items() if name != other})
    assert edit.ledger.get(edit.key) is None


def test_no_secret_is_recorded(edit):
    secret = "correct-horse-battery"
    edit(secrets={secret}, asset={**WHOLE, "attributes": {secret: f"say {secret}"}})
    assert secret not in repr(edit.ledger.get(edit.key))


@pytest.mark.parametrize("resource", [CREATE], indirect=True)
def test_the_next_steps_after_an_unknown_outcome(edit, service):
    """What the message of a refusing task proposes does work."""
    put(edit.ledger, key(service), Entry(INTENT, SENT, {}))
    assert task(edit.ledger, base_url=service.url)["outcome"] == "unknown"
    edit(base_url=service.url + "/", asset=WHOLE)
    confirmed = task(edit.ledger, base_url=service.url)
    assert (confirmed["changed"], confirmed["asset"], service.api.conversation) == (
        False,
        WHOLE,
        [],
    )
    edit(base_url=service.url, state="absent")
    assert task(edit.ledger, base_url=service.url)["outcome"] == "accepted"
