"""Every option of an item of a list with a value of every wrong type: each place reports the same,
exactly once.

Each item of a list of wrong items has one such value, so that a few tasks cover all of them.
`module` is a module in this process; `become`, where Ansible starts it, takes one of the two lists.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from crossing.test_wrong_types import NEVER_MEANT, PYTHON, SCALARS, VALUES, _options
from support.front import run_plural
from support.running import Ansible
from support.shapes import put
from support.wire import Last, running

PLURALS = {plural.name: plural for plural in (VIRTUAL_MACHINES, APPLICATION_ROLES)}
NO_DICTS = {"null": None, "number": 1, "true": True, "text": "x", "list": [{"name": "a"}]}
PLACES = {"worker": {}, "become": {"become": True, "become_method": "myself"}}
LABELS = re.compile(
    r"(?<!\w)((?:\[\d+\](?: \(\w+\))?(?:, )?)+): "
)  # the items that have a fault, in front of it


def wrong_of(plural) -> dict[str, tuple[str, object]]:
    """Return items that can only be mistakes, each with the option that its fault has to name."""
    found = {}
    for path, kind in _options(plural.item_options):
        for name in NEVER_MEANT.get(kind, SCALARS):
            given = {} if path[0] == "body" else {"attributes": {}}
            item = {
                **given,
                plural.key: f"{'_'.join(map(str, path))}_{name}",
                **put(path, VALUES[name]),
            }
            found[f"{plural.name}-{'.'.join(map(str, path))}-{name}"] = (
                [part for part in path if part][-1],
                item,
            )
    elements = [path for path, kind in _options(plural.item_options) if kind == "list of dict"]
    for path in elements:
        for name, value in NO_DICTS.items():
            item = {plural.key: f"{path[-1]}_of_{name}", **put(path, [value])}
            found[f"{plural.name}-{'.'.join(path)}-of-{name}"] = path[-1], item
    return {
        **found,
        f"{plural.name}-empty": (plural.key, {}),
        **{f"{plural.name}-{name}": ("must be a dict", value) for name, value in NO_DICTS.items()},
    }


WRONG = {name: wrong_of(plural) for name, plural in PLURALS.items()}
SHORTEST = min(WRONG, key=lambda name: len(WRONG[name]))
AT_ONCE = 90  # wrong items in a task: a message tells at most 100 faults
CASES = [(name, case) for name in WRONG for case in WRONG[name]]


@pytest.fixture(scope="module")
def said(collections: Path, tmp_path_factory) -> dict[str, dict[str, dict[str, str]]]:
    """Return the fault reported for each wrong item, by place."""
    told: dict[str, dict[str, dict[str, str]]] = {place: {} for place in (*PLACES, "module")}
    with running(lambda sent: Last()) as silent:
        shared, tasks = (
            {"base_url": silent.url, "access_token": "token-of-the-tests", "concurrency": 1},
            {},
        )
        for name, plural in PLURALS.items():
            for first in range(0, len(WRONG[name]), AT_ONCE):
                options = {
                    **shared,
                    plural.option: [WRONG[name][case][1] for case in cases_from(name, first)],
                }
                task = {f"infrastructure.services.{plural.name}": options}
                for place, keywords in PLACES.items():
                    if place == "worker" or name == SHORTEST:
                        tasks[f"{place} {name} {first}"] = {**keywords, **task}
                told["module"].update(split(run_plural(plural, options), name, first))
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_errors": True,
            "tasks": [{"name": name, **task} for name, task in tasks.items()],
        }
        ansible = Ansible(tmp_path_factory.mktemp("items"), collections, silent.url, "local")
        run = ansible.playbook(json.dumps([play]) + "\n", ANSIBLE_PIPELINING="true")
    assert silent.connections == 0
    assert "Traceback" not in run.output
    for task in tasks:
        place, name, first = task.split(" ")
        told[place].update(split(run.result(task), name, int(first)))
    return told


def cases_from(name: str, first: int) -> list[str]:
    """Return the cases of one task, the first of which has this number."""
    return list(WRONG[name])[first : first + AT_ONCE]


def split(result: dict, name: str, first: int) -> dict[str, str]:
    """Return the fault that a refusal reports for each item."""
    assert (result["outcome"], result["failed"]) == ("not_sent", True), result
    cases = cases_from(name, first)
    _head, *parts = LABELS.split(result["msg"])
    return {
        cases[int(number)]: text
        for labels, text in zip(parts[::2], parts[1::2])
        for number in re.findall(r"\[(\d+)\]", labels)
    }


@pytest.mark.parametrize(("name", "case"), CASES, ids=[case for _name, case in CASES])
def test_each_place_reports_the_same_and_names_the_option(said, name, case):
    option, _item = WRONG[name][case]
    texts = {
        place: told.get(case, "(nothing)").rstrip("; .")
        for place, told in said.items()
        if place != "become" or name == SHORTEST
    }
    (text,) = set(texts.values())
    assert option in text
    assert not PYTHON.search(text)
    parts = text.split("; ")
    assert len(parts) == len(set(parts))
    assert "unable to convert" not in text
