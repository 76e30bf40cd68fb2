# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of the playbooks lists every playbook with every variable that a user can set, and no
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.plugin_utils._run import role
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.role import (
    _unknown_to_playbook,
)
from jinja2 import Environment, nodes

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = {path.stem: path for path in sorted((ROOT / "playbooks").glob("*.yml"))}
PAGE = (ROOT / "docs/docsite/rst/playbooks.rst").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"\n(\w+)\n-+\n\n(.*?)(?=\n[\w ]+\n-+\n|\Z)", PAGE, re.DOTALL))


def documented(section: str) -> set[str]:
    """Return the variables of a playbook: those of its table, and those that it shares."""
    shared = re.findall(r"^Common variables: .*?(?=\n\n|\Z)", section, re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"``(\w+)``", "".join(shared)))
    return {*re.findall(r"\* - ``(\w+)``", section), *named} - PLAYBOOKS.keys()


DOCUMENTED = {name: documented(text) for name, text in SECTIONS.items()}
ANSIBLES = {  # and ansible_...
    "hostvars",
    "inventory_hostname",
    "item",
    "lookup",
    "now",
    "omit",
    "playbook_dir",
    "range",
    "dict",
}
EXPRESSIONS = {"when", "that", "until", "failed_when", "changed_when"}
ROLE = {
    *yaml.safe_load((ROOT / "roles/fleet/meta/argument_specs.yml").read_text(encoding="utf-8"))[
        "argument_specs"
    ]["main"]["options"]
}
ASSETS = ("create_virtual_machine", "update_cassandra_application_role", "create_fleet")


def files(path: Path) -> Iterator[Path]:
    """Yield a playbook, and the files that it imports, includes and reads."""
    yield path
    for others in re.findall(
        r"(?:_tasks|_playbook|vars_files): (.*\.yml)", path.read_text(encoding="utf-8")
    ):
        for other in others.strip("[]").split(", "):
            yield from files(path.parent / other)


def content(path: Path) -> object:
    """Return what a file holds; a file of variables as a keyword of a play would."""
    held = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"vars": held} if isinstance(held, dict) else held


def members(part: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield every key with its value, at every level; elements of a list have the key of the list."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield str(name), value
            if name != "body":  # of a request
                yield from members(value, str(name))
    for element in part if isinstance(part, list) else ():
        yield from members(element, key) if isinstance(element, (dict, list)) else [(key, element)]


def set_inside(found: list[tuple[str, object]]) -> set[str]:
    """Return the variables that a playbook sets itself."""
    named = {str(value) for key, value in found if key in {"register", "loop_var"}}
    given = [value for key, value in found if key in {"vars", "ansible.builtin.set_fact"}]
    return named.union(*given)


def used(found: list[tuple[str, object]]) -> set[str]:
    """Return the variables in the templates and expressions of a playbook."""
    texts = [
        f"{{{{ {value} }}}}" if key in EXPRESSIONS else value
        for key, value in found
        if isinstance(value, str)
    ]
    names = [
        name
        for text in texts
        for name in Environment().parse(text.replace("\\", "")).find_all(nodes.Name)
    ]
    stored = {name.name for name in names if name.ctx == "store"}
    return {name.name for name in names if not name.name.startswith("ansible_")} - stored - ANSIBLES


def test_every_playbook_has_a_section():
    assert sorted(SECTIONS) == list(PLAYBOOKS)


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_the_page_has_every_variable_of_a_playbook_and_no_other(name):
    paths = list(files(PLAYBOOKS[name]))
    found = [member for path in paths for member in members(content(path))]
    more = {"create_fleet": ROLE, "in_doubt": {"states"}}.get(name, set())  # which in_doubt refuses
    own = {
        each for each in used(found) if each.startswith("__")
    }  # between a playbook and the one that imports it
    assert used(found) - own - set_inside(found) <= DOCUMENTED[name] | more
    whole = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert {each for each in DOCUMENTED[name] if not re.search(rf"\b{each}\b", whole)} == set()


@pytest.mark.parametrize("name", ASSETS)
def test_what_sends_requests_takes_the_url_the_token_and_the_ledger(name):
    assert {"base_url", "access_token", "ledger"} <= DOCUMENTED[name]


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_a_playbook_knows_what_it_takes(name):
    """So that another one is refused, by require_known_variables or, without a module of ours, by
    the playbook.
    """
    (play,) = yaml.safe_load(PLAYBOOKS[name].read_text(encoding="utf-8"))
    if "ansible.builtin.import_playbook" in play:
        assert play["ansible.builtin.import_playbook"] == "show_ledger.yml"
        assert DOCUMENTED[name] <= DOCUMENTED["show_ledger"] | {"fail"}
        assert set(play["vars"]["__variables"]) == DOCUMENTED[name]
    else:
        assert set(play["vars"]["__variables"]) == {
            each for each in DOCUMENTED[name] if not each.startswith("fleet_")
        }


def test_what_an_action_reads_is_set_by_a_playbook_or_the_role():
    ours = [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").rglob("*.yml")]
    given = "".join(path.read_text(encoding="utf-8") for path in ours)
    read = {role.FILE, role.DELIMITER, role.REPORTS, role.ONLY_CHECKS, role.SHOWS_TABLE}
    assert read <= set(re.findall(r"^ *(__\w+):", given, re.MULTILINE))


def taken(name: str) -> set[str]:
    """Return the variables that a playbook takes."""
    return DOCUMENTED[name] | (ROLE if name == "create_fleet" else set())


def test_no_variable_of_another_playbook_is_taken_for_a_misspelled_one():
    """So that two playbooks can be run by one command; these few look too much like what would be
    ignored.
    """
    every = set().union(*map(taken, PLAYBOOKS))
    refused = {
        (name, other)
        for name in PLAYBOOKS
        if name not in ("emulator", "in_doubt")
        for other, _hint in _unknown_to_playbook(every - taken(name), DOCUMENTED[name])
    }
    ledgers = [name for name in PLAYBOOKS if "ledger" in taken(name) and name != "in_doubt"]
    assert refused == {
        # Without the ledger that they name, a playbook would use another one, or none.
        *((name, "fleet_ledger") for name in ledgers if name != "create_fleet"),
        *((name, "fleet_ledger_create") for name in ledgers if name != "create_fleet"),
        ("show_ledger", "fail"),  # which only in_doubt has
        ("settle", "fail"),
        ("update_cassandra_application_role", "fleet_application_roles"),
        ("create_fleet", "virtual_machine_name"),
        *((name, "to_base_url") for name in (*ASSETS, "show_ledger", "settle")),
    }


@pytest.mark.parametrize("name", [name for name in PLAYBOOKS if name != "in_doubt"])
def test_no_variable_of_its_own_is_taken_for_a_misspelled_one(name):
    (play,) = yaml.safe_load(PLAYBOOKS[name].read_text(encoding="utf-8"))
    assert [*_unknown_to_playbook(set(play["vars"]) - taken(name), DOCUMENTED[name])] == []
