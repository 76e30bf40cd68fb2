"""What creating a virtual machine sends, byte by byte."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    Entry,
)
from ansible_collections.infrastructure.services.plugins.module_utils._resources.resources import (
    VIRTUAL_MACHINE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import (
    holds_placeholder,
)
from hypothesis import given
from hypothesis import strategies as st
from support import CREATE, run_exactly, run_task
from support.shapes import of_spec
from support.wire import answer, serving

SHAPE = of_spec({"type": "dict", "options": VIRTUAL_MACHINE.attributes})
LEAVES = {
    "string": st.text(st.characters(exclude_categories=["Cs"])).filter(
        lambda text: not holds_placeholder(text)
    ),
    "date-time": st.datetimes().map(
        lambda moment: moment.strftime("2%y-%m-%dT%H:%M:%SZ").replace("2", "20", 1)
    ),
    "number": st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
}


def values(shape: object) -> st.SearchStrategy:
    """Return a strategy for valid values of this shape: any field may be missing or null."""
    if isinstance(shape, dict):
        fields = {name: st.none() | values(inner) for name, inner in shape.items()}
        return st.fixed_dictionaries({}, optional=fields)
    return st.lists(values(shape[0]), max_size=2) if isinstance(shape, list) else LEAVES[shape]


def given_fields(value: object) -> object:
    """Return what has to be sent: everything but nulls, whole numbers without a decimal point."""
    if isinstance(value, dict):
        return {name: given_fields(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [given_fields(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def body_of(**options) -> str:
    """Return the body that is sent, as text."""
    with serving(answer(201, {})) as wire:
        result = run_task(CREATE, base_url=wire.url, **options)
        assert result["outcome"] == "accepted", result
        return wire.sent[0].body.decode("utf-8")


@pytest.fixture(scope="module")
def service():
    """A service that answers everything it is asked, shared by all examples of a property."""
    with serving(*[answer(201, {})] * 2000) as wire:
        yield wire


@given(attributes=values(SHAPE))
def test_exactly_what_was_given_is_sent(service, attributes):
    run_task(CREATE, base_url=service.url, attributes=attributes)
    sent = json.loads(service.sent[-1].body)
    wanted = given_fields(attributes)
    assert sent == {"name": "web01", "attributes": wanted}
    assert json.dumps(sent) == json.dumps(
        {"name": "web01", "attributes": wanted}
    )  # 4 is not 4.0 here


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, '{"name":"web01","attributes":{}}'),
        (
            {"attributes": {"cpu": None, "subnet": {"dns": None}}},
            '{"name":"web01","attributes":{"subnet":{}}}',
        ),
        (
            {"attributes": {"cpu": 4.0, "vm_ram": "4.0"}},
            '{"name":"web01","attributes":{"cpu":4,"vm_ram":4}}',
        ),
        (
            {"attributes": {"volumes": [{"name": "a", "size_gb": 10.0}, {"size_gb": None}]}},
            '{"name":"web01","attributes":{"volumes":[{"name":"a","size_gb":10},{}]}}',
        ),
        (
            {"attributes": {"creation_date": "2026-01-02 03:04:05+00:00"}},
            '{"name":"web01","attributes":{"creation_date":"2026-01-02T03:04:05Z"}}',
        ),
        ({"name": "größer 🚀"}, '{"name":"größer 🚀","attributes":{}}'),
        (
            {"extra_attributes": {"new": 4.5, "nothing": None}},
            '{"name":"web01","attributes":{"new":4.5}}',
        ),
        (
            {"attributes": {"cpu": 1}, "extra_attributes": {"new": [None]}},
            '{"name":"web01","attributes":{"cpu":1,"new":[null]}}',
        ),
    ],
)
def test_the_body_is_what_was_given(options, body):
    assert body_of(**options) == body


@pytest.mark.parametrize("options", [{"name": ""}, {"extra_attributes": {"cpu": 4}}])
def test_an_invalid_creation_is_refused_naming_the_option(options):
    with serving() as wire:
        result = run_task(CREATE, base_url=wire.url, **options)
        assert wire.connections == 0
    assert (result["failed"], result["outcome"], result["changed"]) == (True, "not_sent", False)
    assert result["msg"].startswith(f"{next(iter(options))}: ")


SENT = {"name": "web01", "attributes": {"cpu": 2, "volumes": [{"name": "a"}]}}
CREATED = Entry("done", SENT, {"id": "1", "name": "web01"})
ADOPTED = Entry("done", {}, {"id": "1", "name": "web01", "attributes": {"cpu": 2, "ip": None}})
SIZED = {"volumes": [{"name": "a", "size_gb": 9}]}
# The entry, the attributes that are asked for, the field that differs, and the one never sent.
ASKED = {
    "what was sent": (CREATED, {"cpu": 2}, "", ""),
    "another value": (CREATED, {"cpu": 4}, "attributes.cpu (4 asked for, 2 recorded)", ""),
    "one more in a list": (CREATED, {"volumes": [{}, {}]}, "attributes.volumes (", ""),
    "never sent": (CREATED, {"cpu": 2, "team": "a"}, "", "attributes.team was not sent"),
    "never sent in a list": (CREATED, SIZED, "", "attributes.volumes.size_gb was not sent"),
    "both": (CREATED, {**SIZED, "cpu": 4}, "attributes.cpu (", "attributes.volumes.size_gb"),
    "adopted": (ADOPTED, {"cpu": 2, "ip": "192.0.2.1", "team": "a"}, "", ""),
    "adopted with another value": (ADOPTED, {"cpu": 4, "team": "a"}, "attributes.cpu (", ""),
}


@pytest.mark.parametrize("on_difference", ["warn", None, "fail"])
@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("asked", ASKED)
def test_a_value_other_than_the_one_sent_is_a_failure(asked, check_mode, on_difference):
    """Unless it is to be a warning, as a field that was never sent always is."""
    recorded, attributes, differs, never_sent = ASKED[asked]
    given = {
        "base_url": "https://service.example",
        "access_token": "token-of-the-tests",
        "ledger": "/fleet.db",
        "name": "web01",
        "attributes": attributes,
        "on_difference": on_difference,
    }
    result = run_exactly(CREATE, given, check_mode, recorded=recorded)
    failed = bool(differs and on_difference != "warn")
    assert (result.get("failed", False), result["changed"]) == (failed, False)
    assert (result["outcome"], result["asset"]) == ("not_sent", recorded.asset)
    told = [result["msg"]] if failed else result["warnings"]
    wanted = [differs] * bool(differs) + [never_sent] * bool(never_sent and not failed)
    assert [text in each for text, each in zip(wanted, told)] == [True] * len(wanted)
    assert len(told) == len(wanted)
    if differs:
        assert told[0].startswith("virtual machine web01: it is recorded with different values")
        assert result["differs"]
