"""Every option at every level with a value of every wrong type.

Nothing is sent and no Python error comes back; a value that can only be a mistake is refused,
naming its option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from support import LEAST, SPECS
from support.front import run_module, run_plural
from support.shapes import put
from support.wire import Last, running

VALUES = {
    "list": [1],
    "dict": {"a": 1},
    "number": 1,
    "true": True,
    "text": "x",
    "null": None,
    "nested": [{"a": [{"b": {"c": []}}]}],
}
SCALARS = ("list", "dict", "nested")  # never a valid scalar
NEVER_MEANT = {
    "dict": ("list", "number", "true", "text", "nested"),
    "list": ("dict",),
    "list of dict": ("number", "true"),
    **dict.fromkeys(("str", "path"), (*SCALARS, "number", "true")),
}
# What an unhandled Python error looks like.
PYTHON = re.compile(
    r"Traceback|object has no attribute|is not iterable|not subscriptable|unhashable"
    r"|argument of type|string indices|Internal error|task failed|Unexpected",
    re.IGNORECASE,
)


class Wrong(NamedTuple):
    """One option that holds one value."""

    resource: str
    path: tuple  # 0: the first item of a list
    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.resource}-{'.'.join(map(str, self.path))}-{self.value}"

    def options(self, base_url: str) -> dict:
        """Return the options of the task."""
        given = {
            "base_url": base_url,
            "access_token": "token-of-the-tests",
            "retries": 0,
            **LEAST[self.resource],
        }
        if self.path[0] == "body" and VALUES[self.value] is not None:
            given.pop("attributes", None)
        if self.path[0] == "auth_parameters":
            given.update(
                access_token=None,
                auth_url=f"{base_url}/token",
                client_id="c",
                client_secret="a-long-secret",
            )
        return {**given, **put(self.path, VALUES[self.value])}

    @property
    def is_refused(self) -> bool:
        """Whether the value can only be a mistake."""
        return self.value in NEVER_MEANT.get(self.kind, SCALARS)


def _options(spec: dict, above: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """Yield the path and the kind of each option."""
    for name, option in spec.items():
        path, inner = (*above, name), option.get("options")
        kind = "list of dict" if option["type"] == "list" and inner else str(option["type"])
        yield path, kind
        if inner:
            yield from _options(inner, (*path, 0) if kind == "list of dict" else path)


OPTIONS = {
    f"{name}-{'.'.join(map(str, path))}": [Wrong(name, path, kind, value) for value in VALUES]
    for name, spec in SPECS.items()
    for path, kind in _options(spec.options)
}


def check(case: Wrong, result: dict) -> None:
    """Assert what holds for every result of such a task."""
    said = str(result.get("msg", ""))
    assert result["outcome"] == "not_sent", case
    assert not PYTHON.search(said), said
    assert "exception" not in result or "(traceback unavailable)" in result["exception"], case
    assert result.get("failed", False) or not case.is_refused, (
        f"{case} is taken: {result.get('request')}"
    )
    if result.get("failed"):
        names = [part for part in case.path if part]
        assert any(str(name) in said for name in names), said


@pytest.fixture(scope="module")
def silent():
    """A service that must not receive anything."""
    with running(lambda sent: Last()) as wire:
        yield wire
    assert wire.connections == 0


@pytest.mark.parametrize("option", OPTIONS)
def test_a_module_refuses_it_and_names_the_option(silent, option: str):
    for case in OPTIONS[option]:
        if (
            case.path != ("ledger",) or case.is_refused
        ):  # outside the worker, a module refuses every ledger
            check(case, run_module(case.resource, case.options(silent.url), check_mode=True))
    assert silent.connections == 0


NO_DICTS = {"null": None, "number": 1, "true": True, "text": "x", "list": [{"name": "a"}]}
# The items that have a fault, in front of it.
LABELS = re.compile(r"(?<!\w)((?:\[\d+\](?: \(\w+\))?(?:, )?)+): ")
AT_ONCE = 90  # wrong items in a task: a message tells at most 100 faults


def wrong_items(plural) -> list[tuple[str, object]]:
    """Return items that can only be mistakes, each after the option that its fault has to name."""
    found: list[tuple[str, object]] = [(plural.key, {})]
    found += [("must be a dict", value) for value in NO_DICTS.values()]
    for path, kind in _options(plural.item_options):
        name = [str(part) for part in path if part][-1]
        given = {} if path[0] == "body" else {"attributes": {}}
        given[plural.key] = "_".join(map(str, path))
        values = [VALUES[value] for value in NEVER_MEANT.get(kind, SCALARS)]
        values += [[value] for value in NO_DICTS.values() if kind == "list of dict"]
        found += [(name, {**given, **put(path, value)}) for value in values]
    return found


@pytest.mark.parametrize("plural", [VIRTUAL_MACHINES, APPLICATION_ROLES], ids=lambda it: it.name)
def test_each_wrong_item_of_a_list_is_told_once(silent, plural):
    wrong = wrong_items(plural)
    options = {"base_url": silent.url, "access_token": "token-of-the-tests", "ledger": "none"}
    for first in range(0, len(wrong), AT_ONCE):
        some = wrong[first : first + AT_ONCE]
        result = run_plural(plural, {**options, plural.option: [item for _name, item in some]})
        assert (result["outcome"], result["failed"]) == ("not_sent", True), result
        assert not PYTHON.search(result["msg"])
        _head, *parts = LABELS.split(result["msg"])
        told = [
            (int(number), text)
            for labels, text in zip(parts[::2], parts[1::2])
            for number in re.findall(r"\[(\d+)\]", labels)
        ]
        assert sorted(number for number, _text in told) == list(range(len(some)))
        assert [text for number, text in told if some[number][0] not in text] == []
