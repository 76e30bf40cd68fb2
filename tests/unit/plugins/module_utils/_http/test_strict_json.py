"""JSON is read and written strictly, for any input."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._http.strict_json import (
    MAX_DEPTH,
    InvalidJSON,
    decode_object,
)
from ansible_collections.infrastructure.services.plugins.module_utils._values import encode
from hypothesis import example, given
from hypothesis import strategies as st

MOST_DIGITS = 4300  # of an integer, which Python converts by default
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = TEXT.filter(lambda key: not key.startswith("__ansible_"))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)
ANSWERS = st.one_of(
    st.binary(), OBJECTS.map(json.dumps).map(str.encode), VALUES.map(json.dumps).map(str.encode)
)
BROKEN = [
    b'{"%s',
    b'{"%s": }',
    b'{"%s": 1, "%s": 2}',
    b'{"a": "%s\n"}',
    b'"%s"',
    b'{"a": %s}',
    b'{"%s": "\xff"}',
]
UNSPEAKABLE = {
    "nan": {"a": float("nan")},
    "infinity": {"a": float("inf")},
    "object": {"a": object()},
    "set": {"a": {1, 2}},
    "bytes": {"a": b"bytes"},
    "surrogate": {"a": "\ud800"},
    "surrogate key": {"\ud800": 1},
}


def nested(levels: int, opening: str = '{"a":', middle: str = "1", closing: str = "}") -> bytes:
    """Return nested objects."""
    return (opening * levels + middle + closing * levels).encode()


@given(OBJECTS)
def test_json_survives_a_round_trip(body):
    assert decode_object(encode(body, "body")) == body


@given(ANSWERS)
@example(b'{"a": 1}\xef\xbb\xbf')
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
def test_any_bytes_are_an_object_or_refused(raw):
    try:
        value = decode_object(raw)
    except InvalidJSON:
        return
    assert isinstance(value, dict)
    assert value == json.loads(raw)
    encode(value, "answer")  # so Ansible can pass it on


@given(OBJECTS, st.data())
def test_a_truncated_object_is_refused(body, data):
    raw = encode(body, "body")
    with pytest.raises(InvalidJSON):
        decode_object(raw[: data.draw(st.integers(0, len(raw) - 1))])


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b'{"a": 1} {}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b"null", "not an object"),
        (b"[{}]", "not an object"),
        (b"NaN", "NaN"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "range of a double"),
        (b'{"a": 1, "a": 1}', "same key twice"),
        (b'[{"b": {"a": 1, "\\u0061": 2}}]', "same key twice"),
        (b'{"a": ' + b"9" * (MOST_DIGITS + 1) + b"}", "digits"),
        (b'{"a": -' + b"9" * (MOST_DIGITS + 1) + b"}", "digits"),
        (nested(MAX_DEPTH + 1), "deeper"),
        (nested(MAX_DEPTH, '{"a":[', "", "]}"), "deeper"),
        (nested(5000), "deeper"),
        (b'{"a": "line\nend"}', "not JSON"),
        (b'{"a": [' + b"0," * 500_000 + b"0]}", "300,000 parts"),
        (b'{"__ansible_type": 1}', "the key __ansible_type"),
        (b'{"a": [{"__ansible_unsafe": 1}]}', "the key __ansible_unsafe"),
        (b'{"a": {"__ansible_vault": 1}}', "the key __ansible_vault"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else value,
)
def test_what_a_lenient_parser_accepts_is_refused(raw, why):
    with pytest.raises(InvalidJSON, match=why):
        decode_object(raw)


@pytest.mark.parametrize("sign", ["", "-"])
def test_the_longest_number_and_the_deepest_object_are_read_and_written(sign):
    digits = "9" * MOST_DIGITS
    assert decode_object(f'{{"a": {sign}{digits}}}'.encode()) == {"a": int(sign + digits)}
    deepest = decode_object(nested(MAX_DEPTH))
    assert decode_object(encode(deepest, "attributes")) == deepest


@pytest.mark.parametrize("template", BROKEN)
def test_a_reason_quotes_nothing_from_the_answer(template):
    with pytest.raises(InvalidJSON) as refused:
        decode_object(template.replace(b"%s", b"canary"))
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("body", UNSPEAKABLE.values(), ids=UNSPEAKABLE)
def test_values_that_json_cannot_express_are_refused_naming_the_option(body):
    with pytest.raises(InvalidInput, match=r"^attributes: contains a"):
        encode(body, "attributes")


def test_a_value_nested_too_deeply_is_not_written():
    deep: list = []
    for _level in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match=r"^attributes: .* hundreds of levels"):
        encode(deep, "attributes")
