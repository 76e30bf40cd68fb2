"""Types of fields: what they accept, what they refuse, what is sent; and how two values of a
resource are compared.
"""

from __future__ import annotations

import copy
import json
import math
from datetime import datetime, timedelta, timezone

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._values import (
    ABSENT,
    DATE_TIME,
    DICT,
    LIST,
    NUMBER,
    TEXT,
    differences,
    overlay,
    prune,
)
from hypothesis import assume, given
from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
ZONES = st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)).map(
    lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
)
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)


@pytest.mark.parametrize("value", ["x", "", "007", "yes"])
def test_text_is_taken_as_it_is(value):
    assert TEXT(value) == value


@pytest.mark.parametrize(
    "written", ["0017", "4", "0x1F", "1_000", "12:30:45", "52:54:00:12:34:56", "12.10", "-0.5"]
)
def test_a_number_where_text_belongs_is_refused_with_the_advice_to_write_it_as_text(written):
    with pytest.raises(TypeError, match=r"write '0017', or {{ x \| string }} for a number"):
        TEXT(yaml.safe_load(written))


@pytest.mark.parametrize("value", [True, False, None, [], ["x"], {}, {"a": 1}, b"x"])
def test_text_refuses_values_whose_spelling_python_would_choose(value):
    with pytest.raises(TypeError):
        TEXT(value)


@pytest.mark.parametrize(
    ("value", "out"),
    [
        (4, "4"),
        (4.0, "4"),
        ("4.0", "4"),
        ("-0", "0"),
        (-0.0, "0"),
        ("1e3", "1000"),
        (0.5, "0.5"),
        ("-1.25", "-1.25"),
        ("9007199254740993", "9007199254740993"),
        (2.0**53, "9007199254740992"),
        (10**308, str(10**308)),
    ],
)
def test_numbers_are_sent_in_their_shortest_form(value, out):
    assert json.dumps(NUMBER(value)) == out


@pytest.mark.parametrize(
    "value",
    [
        "",
        "4,0",
        "4.",
        "0x4",
        "1_000",
        "٤",
        "nan",
        "1e999",
        math.nan,
        True,
        None,
        [],
        {},
        [4],
        10**400,
        "9" * 4301,
    ],
)
def test_anything_but_a_finite_number_is_refused(value):
    with pytest.raises(TypeError):
        NUMBER(value)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value_and_whole_ones_have_no_decimal_point(value):
    out = NUMBER(value)
    assert out == value
    assert not json.dumps(out).endswith(".0")
    assert type(NUMBER(out)) is type(out)


@pytest.mark.parametrize(
    ("value", "out"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04:05+00:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04:05", "2026-01-02T03:04:05Z"),
        ("20260102T030405Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04Z", "2026-01-02T03:04:00Z"),
        ("2026-01-02T03:04:05.987654Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05 +0530", "2026-01-01T21:34:05Z"),
        ("2026-01-02T03:04:05-11", "2026-01-02T14:04:05Z"),
        ("  2026-01-02T03:04:05Z\n", "2026-01-02T03:04:05Z"),
        ("2024-02-29T23:59:59-00:30", "2024-03-01T00:29:59Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_date_times_are_sent_in_one_format(value, out):
    assert DATE_TIME(value) == out


@pytest.mark.parametrize(
    "value",
    [
        "",
        "2026-01-02",
        "2026-01-02T03Z",
        "2026-1-2T03:04:05Z",
        "02.01.2026 03:04:05",
        "2026-02-30T00:00:00Z",
        "2026-01-02T03:04:60Z",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+01:60",
        "2026-01-02T03:04:05 CET",
        "٢٠٢٦-01-02T03:04:05Z",
        "9999-12-31T23:59:59-01:00",
        20260102,
        None,
        True,
        [],
        {},
    ],
)
def test_an_invalid_date_time_is_refused(value):
    with pytest.raises(TypeError, match=r"^must be a date-time such as 2026-01-02T03:04:05Z"):
        DATE_TIME(value)


@given(
    MOMENTS,
    st.sampled_from(["T", " "]),
    st.sampled_from(["auto", "seconds", "minutes", "milliseconds"]),
)
def test_a_date_time_keeps_its_instant(moment, separator, precision):
    out = DATE_TIME(moment.isoformat(separator, precision))
    read = datetime.strptime(out, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    assert (
        timedelta(0)
        <= moment - read
        < timedelta(minutes=1 if precision == "minutes" else 0, seconds=1)
    )
    assert DATE_TIME(out) == out


@given(MOMENTS)
def test_an_unquoted_timestamp_of_yaml_is_a_date_time(moment):
    """YAML turns it into an object, which Ansible turns back into text."""
    written = moment.isoformat()
    assume(written.count(":") == 3)
    assert DATE_TIME(str(yaml.safe_load(written))) == DATE_TIME(written)


@given(VALUES)
def test_no_object_keeps_a_null(value):
    before = copy.deepcopy(value)
    pruned = prune(value)
    assert value == before
    assert prune(pruned) == pruned
    assert all(item is not None for inner in objects(pruned) for item in inner.values())


def objects(value: object) -> list[dict]:
    """Return every object in the value, at every level."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in inner for found in objects(item)] + (
        [value] if isinstance(value, dict) else []
    )


@given(VALUES, OBJECTS)
def test_overlay_keeps_everything_from_above(below, above):
    assert differences({"x": above}, overlay({"x": below}, {"x": above})) == []
    assert overlay(above, above) == overlay({}, above) == overlay(above, {}) == above


def test_overlay_goes_key_by_key_and_replaces_lists():
    below = {"a": {"b": 1, "c": [1, 2]}, "d": 3}
    assert overlay(below, {"a": {"c": [4]}, "e": {}}) == {"a": {"b": 1, "c": [4]}, "d": 3, "e": {}}


@pytest.mark.parametrize(
    ("wanted", "found", "named"),
    [
        ({"a": 4}, {"a": 4.0}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": "4"}, {"a": 4}, ["a"]),
        ({"a": "2026-01-02T03:04:05Z"}, {"a": "2026-01-02T03:04:06Z"}, ["a"]),
        ({"a": "x"}, {"a": None}, ["a"]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3, "d": 4}}, ["a.c"]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["a[1].b"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": {}}, {"a": []}, ["a"]),
        ({"a": {}}, {"a": {"b": 1}}, ["a"]),
    ],
)
def test_differences_are_named(wanted, found, named):
    assert [difference.field for difference in differences(wanted, found)] == named


def test_a_missing_field_differs():
    found = differences({"a": 1, "b": {"c": 2}}, {"b": {}})
    assert [(difference.field, difference.found) for difference in found] == [
        ("a", ABSENT),
        ("b.c", ABSENT),
    ]
    how = "{wanted} asked for, {found} recorded"
    assert [difference.describe(how) for difference in found] == [
        "a (1 asked for, none recorded)",
        "b.c (2 asked for, none recorded)",
    ]


@given(VALUES)
def test_nothing_differs_from_itself(value):
    assert differences(value, copy.deepcopy(value)) == []


AT, SIZE = {"at": {"type": DATE_TIME}}, {"sizes": {"type": LIST, "elements": NUMBER}}


@pytest.mark.parametrize(
    ("wanted", "found", "is_typed"),
    [
        ({"at": "2026-01-02T03:04:05.90Z"}, {"at": "2026-01-02T04:04:05,9+01:00"}, True),
        ({"at": "2026-01-02T03:04:05Z"}, {"at": "2026-01-02T03:04:05.000Z"}, True),
        ({"sizes": [4]}, {"sizes": ["4.0"]}, True),
        ({"at": "2026-01-02T03:04:05Z"}, {"at": "2026-01-02T03:04:05.9Z"}, False),
        ({"note": "2026-01-02T03:04:05Z"}, {"note": "2026-01-02T03:04:05.0Z"}, False),
        ({"sizes": [1]}, {"sizes": [True]}, False),
        ({"at": "then"}, {"at": 7}, False),
    ],
)
def test_values_are_compared_by_the_type_of_their_field_or_exactly(wanted, found, is_typed):
    option = {"type": DICT, "options": {**AT, **SIZE}}
    assert bool(differences(wanted, found, option)) is not is_typed
    assert differences(wanted, found)
