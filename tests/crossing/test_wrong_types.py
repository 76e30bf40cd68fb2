"""Every option at every level with a value of every wrong type, as a module; in the worker one
option of each kind.

Nothing is sent and no Python error comes back; a value that can only be a mistake is refused,
naming its option. Both places have the same specification and validator, so the worker runs one
option of each kind at each depth, and those that it reads itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from support import LEAST, OPERATION, SPECS
from support.front import run_module
from support.running import Ansible
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
}
READ_BY_THE_WORKER = {
    "base_url",
    "access_token",
    "client_secret",
    "auth_parameters",
    "ca_path",
    "ledger",
    "name",
    "id",
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


def _in_the_worker() -> list[str]:
    """Return the options to run in the worker."""
    chosen: dict[object, str] = {}
    for name, (case, *_others) in OPTIONS.items():
        own = case.path if case.path[0] in READ_BY_THE_WORKER else ()
        chosen.setdefault((own, case.kind, len(case.path) > 1, 0 in case.path), name)
    return list(chosen.values())


IN_THE_WORKER = _in_the_worker()


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


@pytest.fixture(scope="module")
def in_the_worker(silent, collections: Path, tmp_path_factory) -> dict[str, dict]:
    """Return the result of each case in the worker: one loop over each module's cases."""
    tasks = [
        {
            "name": name,
            f"infrastructure.services.{name}": "{{ item.options }}",
            "loop": f"{{{{ {name} }}}}",
            "loop_control": {"label": "{{ item.case }}"},
            "check_mode": True,
            "ignore_errors": True,
        }
        for name in OPERATION
    ]
    chosen = [case for option in IN_THE_WORKER for case in OPTIONS[option]]
    cases = {
        name: [
            {"case": str(case), "options": case.options(silent.url)}
            for case in chosen
            if case.resource == name
        ]
        for name in OPERATION
    }
    directory = tmp_path_factory.mktemp("wrong")
    variables = directory / "variables.json"
    variables.write_text(json.dumps(cases))
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(variables)],
        "tasks": tasks,
    }
    run = Ansible(directory, collections, silent.url, "local").playbook(
        json.dumps([play], indent=1) + "\n"
    )
    assert "Traceback" not in run.output
    items = [line["result"] for line in run.results if line["kind"] == "item"]
    return {item["item"]["case"]: item for item in items}


@pytest.mark.parametrize("option", IN_THE_WORKER)
def test_a_task_refuses_it_and_names_the_option(silent, in_the_worker, option: str):
    for case in OPTIONS[option]:
        check(case, in_the_worker[str(case)])
    assert silent.connections == 0
