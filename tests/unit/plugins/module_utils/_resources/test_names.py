"""What a name is: every entry to the collection asks the same rule."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.infrastructure.services.plugins.filter.from_csv import from_csv
from ansible_collections.infrastructure.services.plugins.module_utils._errors import ServicesError
from ansible_collections.infrastructure.services.plugins.module_utils._list.items import prepare_all
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.module_utils._task import specs
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv import entries_in
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.editing import (
    edits_of,
)
from support import CREATE, LEAST, SPECS, UPDATE
from support.ledgers import opened
from support.names import NAMES

SERVICE = "https://service.example"


def task(resource: str, **options: object) -> dict:
    """Return the body of a task, with its id."""
    given = {"base_url": SERVICE, **LEAST[resource], **options}
    made = SPECS[resource].sent.task(validate(SPECS[resource], given).valid(), None)
    return {**made.body, "id": made.id}


def listed(**machine: object) -> dict:
    """Return the body of the only machine of a list, with its id."""
    given = {"base_url": SERVICE, "virtual_machines": [machine]}
    (made,) = prepare_all(validate(specs.VIRTUAL_MACHINES, given), None)
    return {**made.body, "id": made.id}


def csv(**cells: str) -> str:
    """Return CSV of one row, whose cells are text in JSON."""
    texts = [json.dumps(cell).replace('"', '""') for cell in cells.values()]
    return f"{','.join(cells)}\n" + ",".join(f'"{text}"' for text in texts) + "\n"


def edited(location: str, entries: object) -> dict:
    """Return the asset that ledger_entry records, with the name of its entry."""
    params = validate(specs.LEDGER_ENTRY, {"ledger": location, "entries": entries}).valid()
    with opened(location, SERVICE) as ledger:
        ((edit,), _result) = edits_of(ledger, params, Secrets())
    assert edit.after.asset["name"] == edit.key.name
    return edit.after.asset


def entry(location: str, name: object, identifier: object) -> dict:
    return edited(location, [{"resource": CREATE, "name": name, "asset": {"id": identifier}}])


def settled(location: str, **cells: str) -> dict:
    file = f"{location}.csv"
    with open(file, "w", encoding="utf-8", errors="surrogatepass") as stream:
        stream.write(csv(**cells))
    return edited(location, entries_in(file))


class Way(NamedTuple):
    """One way into the collection: the name or id that it keeps, where its refusal says it is."""

    keep: Callable[[object, str], object]  # given a name or id, and a ledger
    place: str
    creates: bool = False


WAYS = {
    "a task": Way(lambda name, _: task(CREATE, name=name)["name"], "name: ", True),
    "a list": Way(lambda name, _: listed(name=name)["name"], "name: ", True),
    "CSV": Way(lambda name, _: from_csv(csv(cpu="4", name=name))[0]["name"], r"\(name\): ", True),
    "the name beside an id": Way(lambda name, _: task(CREATE, name=name, id="1")["name"], "name: "),
    "an id": Way(lambda name, _: task(CREATE, id=name)["id"], "id: "),
    "an id in a list": Way(lambda name, _: listed(name="web01", id=name)["id"], "id: "),
    "the name beside an id in CSV": Way(
        lambda name, _: from_csv(csv(id="1", name=name))[0]["name"], r"\(name\): "
    ),
    "an id in CSV": Way(lambda name, _: from_csv(csv(name="a", id=name))[0]["id"], r"\(id\): "),
    "a role": Way(lambda name, _: task(UPDATE, id=name)["id"], "id: "),
    "an entry": Way(lambda name, at: entry(at, name, "1")["name"], "name: "),
    "the id of an entry": Way(lambda name, at: entry(at, "web01", name)["id"], r"asset(\.id)?: "),
    "the name of a file": Way(lambda name, at: settled(at, name=name, id="1")["name"], "name: "),
    "the id of a file": Way(
        lambda name, at: settled(at, name="a", id=name)["id"], r"asset(\.id)?: "
    ),
}
CASES = [
    pytest.param(way, name, id=f"{way}, {name}")
    for way in WAYS
    for name in NAMES
    # A cell is always text. Neither a file nor the JSON of an asset can have a surrogate.
    if not (("CSV" in way or "file" in way) and not isinstance(NAMES[name].value, str))
    and not (name == "a lone surrogate" and re.search("CSV|file|id of an entry", way))
]


@pytest.mark.parametrize(("way", "name"), CASES)
def test_a_name_is_kept_as_it_is_or_refused(tmp_path, way: str, name: str):
    """One to create looks like no other; an id, and the name of what exists, is exact."""
    keep, place, creates = WAYS[way]
    refusal = NAMES[name].new if creates else NAMES[name].exists
    given = NAMES[name].value, str(tmp_path / "ledger.db")
    if not refusal:
        assert keep(*given) == NAMES[name].value
        return
    with pytest.raises((ServicesError, AnsibleFilterError)) as refused:
        keep(*given)
    assert re.search(f"{place}.*{re.escape(refusal)}", str(refused.value))
    assert str(refused.value).isprintable()
