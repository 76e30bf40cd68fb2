"""JSON files that people, editors and broken disks leave behind."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

ANY_TEXT = st.text(max_size=20)
DOUBLED = '{"a": 1, "a": 2}'
ODD_JSON = [
    *("{}", "[]", "null", "NaN", "1e999", "01", '"', '"\\ud800"', DOUBLED),
    *('{"__ansible_unsafe": "a"}', '{"a": NaN}', '{"a": -1e999}', '["\\ud800"]', "{'a': 1}"),
    *("[" * 5000, "[" * 600 + "]" * 600, '{"a":' * 100_000, "9" * 5000, '{"a": %s}' % ("9" * 5000)),
    '{"a": ' + "[" * 70 + "]" * 70 + "}",
]
VALUES = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), ANY_TEXT),
        st.sampled_from([10**30, -1, 2**63, "\ud800", "../x", "web01"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(ANY_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Return a text, as it is or cut, with other characters somewhere, or doubled in a part."""
    kind = draw(st.sampled_from([*["whole"] * 8, "cut", "other", "doubled", "noise"]))
    first, after = sorted(draw(st.integers(0, len(text))) for _number in range(2))
    if kind == "cut":
        return text[:first]
    if kind == "other":
        odd = ['"', "\0", "\udcff", "\ud800", "\n", "\r", "[", "{", ",", ":", "\ufeff"]
        return text[:first] + draw(st.sampled_from(odd) | ANY_TEXT) + text[first:]
    if kind == "doubled":
        return text[:after] + text[first:]
    return draw(st.text(max_size=200)) if kind == "noise" else text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of each part of a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in [*pairs]:
        yield value, key
        if isinstance(part, (dict, list)):
            yield from _places(part)


@st.composite
def json_files(draw: st.DrawFn, whole: dict) -> bytes:
    """Return the bytes of a file that was this JSON, with other values, keys and bytes in it."""
    value = copy.deepcopy(whole)
    for _number in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
        places = [*_places(value)]
        if places:
            draw(changes(*draw(st.sampled_from(places))))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    kind = draw(st.sampled_from(["whole", "damaged", "damaged", "member", "member", "odd"]))
    if kind == "damaged":
        text = draw(damaged(text))
    elif kind == "member":
        text = draw(with_odd_member(text))
    elif kind == "odd":
        text = draw(st.sampled_from(ODD_JSON))
    data = text.encode("utf-8", "surrogatepass")
    return data if draw(st.integers(0, 9)) else data + draw(st.binary(max_size=4))


@st.composite
def changes(draw: st.DrawFn, container: Any, key: Any) -> None:
    """Change a part of a JSON value: it is another one, gone, or there again."""
    kind = draw(st.sampled_from(["value", "value", "gone", "again"]))
    if kind == "value":
        container[key] = draw(VALUES)
    elif kind == "gone":
        del container[key]
    elif isinstance(container, dict):
        container[draw(ANY_TEXT)] = container[key]
    else:
        container.append(container[key])


@st.composite
def with_odd_member(draw: st.DrawFn, text: str) -> str:
    """Return a JSON text with one more member, which may be there already or not be JSON."""
    at = draw(st.sampled_from([at for at, letter in enumerate(text) if letter == "{"])) + 1
    name = draw(st.sampled_from(["item", "body", "plan", "results", "serial", "state", "msg"]))
    return f'{text[:at]}"{name}": {draw(st.sampled_from(ODD_JSON))}, {text[at:]}'
