"""The reference lists every playbook with every variable that a user can set, and no
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment, nodes

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = {path.stem: path for path in sorted((ROOT / "playbooks").glob("*.yml"))}
PAGE = (ROOT / "docs/docsite/rst/reference.rst").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"\n(\w+)\n~+\n\n(.*?)(?=\n[\w ]+\n[~-]+\n)", PAGE, re.DOTALL))


def documented(section: str) -> set[str]:
    """Return the variables of a playbook; its section quotes nothing else but names and values."""
    return {*re.findall(r"``(\w+)``", section)} - PLAYBOOKS.keys() - NO_VARIABLES


NO_VARIABLES = {"ledger_info", "true", "absent", "url", "process", "log"}
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
    more = {"in_doubt": {"states"}}.get(name, set())  # which in_doubt refuses
    own = {
        each for each in used(found) if each.startswith("__")
    }  # between a playbook and the one that imports it
    assert used(found) - own - set_inside(found) <= DOCUMENTED[name] | more
    whole = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert {each for each in DOCUMENTED[name] if not re.search(rf"\b{each}\b", whole)} == set()
