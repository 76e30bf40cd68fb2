# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How updates change a role, compared with a model: any sequence of updates, merged or replaced."""

from __future__ import annotations

from emulator.store import ROLES, Store, completed, merged
from hypothesis import given
from hypothesis import strategies as st

# The duration of an example depends on the machine, not on the emulator.
ENVELOPE = ("id", "name", "attributes")
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([1, {"a": 2}])
NAMES = st.sampled_from(["a", "b", "c"])
OBJECTS = st.dictionaries(NAMES, SCALARS | st.dictionaries(NAMES, SCALARS, max_size=2), max_size=3)
VALUES = SCALARS | OBJECTS
BODIES = st.dictionaries(st.sampled_from(["name", "attributes", "a"]), VALUES, max_size=3)


def paths(value: object, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    """Return the leaves of nested objects by their path; an empty object is a leaf."""
    if not isinstance(value, dict) or not value:
        return {above: value}
    return {
        path: leaf
        for key, item in value.items()
        for path, leaf in paths(item, (*above, key)).items()
    }


@given(st.lists(st.tuples(st.sampled_from(["merge", "replace"]), BODIES), min_size=1, max_size=6))
def test_updates_follow_the_model(updates):
    store = Store(ENVELOPE, lambda: 0, [ROLES])
    model: dict[tuple[str, ...], object] = {}
    for mode, body in updates:
        asset = store.update(ROLES, "r", body, mode, create=True)
        model = {} if mode == "replace" else model
        for path, leaf in paths(body).items() if body else ():
            # a new value replaces the values above and below its path
            gone = {old for old in model if old[: len(path)] == path or path[: len(old)] == old}
            if leaf == {} and any(len(old) > len(path) for old in gone):
                continue  # an empty object leaves the members of an object as they are
            model = {old: value for old, value in model.items() if old not in gone} | {path: leaf}
        assert paths({key: item for key, item in asset.items() if key != "id"}) == (
            model or {(): {}}
        )
        assert asset["id"] == "r"
    assert list(store.assets[ROLES]) == ["r"]


@given(VALUES, VALUES)
def test_merging_changes_neither_side(below, above):
    before, laid = {"x": below}, {"x": above}
    kept = repr((before, laid))
    merged(before, laid)
    assert repr((before, laid)) == kept


@given(BODIES)
def test_merging_is_idempotent(body):
    once = merged({"a": {"b": 1}, "name": "n"}, body)
    assert merged(once, body) == once


def test_completing_keeps_existing_values():
    asset = {"id": "r", "attributes": {"login": False, "more": 1}}
    assert completed(asset, ENVELOPE, ("login", "name")) == {
        "id": "r",
        "name": None,
        "attributes": {"login": False, "name": None, "more": 1},
    }
    assert asset == {"id": "r", "attributes": {"login": False, "more": 1}}
