# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CSV files: what is written is read as the same list, and what a spreadsheet or a person makes is
read or refused.
"""

from __future__ import annotations

import csv
import io
import json

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.infrastructure.services.plugins.filter.csv import FilterModule
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.module_utils._fields import DATE_TIME
from ansible_collections.infrastructure.services.plugins.module_utils._resources import RESOURCES
from ansible_collections.infrastructure.services.plugins.module_utils._resources.planning import (
    ENVELOPE,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import (
    holds_placeholder,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    APPLICATION_ROLES,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validated,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv.reading import read_csv
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv.writing import csv_of
from hypothesis import given
from hypothesis import strategies as st

MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
# A placeholder for a secret is never sent.
WORDS = st.text(st.characters(codec="utf-8"), max_size=12).filter(
    lambda text: not holds_placeholder(text)
)
TEXT = WORDS | st.sampled_from(
    [
        "=1+1",
        "-5",
        "@x",
        '"',
        "[]",
        "{}",
        "true",
        "007",
        " x ",
        "a,b;c",
        "a\r\nb",
        "{{ x }}",
        "\ufeffx",
        "null",
    ]
)
NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9).filter(
    lambda each: not each.is_integer()
)
JSON = st.recursive(
    TEXT | NUMBERS | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def values(option: dict) -> st.SearchStrategy:
    """What an option of a resource may hold."""
    if option.get("elements"):
        return st.lists(
            values({**option, "type": option["elements"], "elements": None}), max_size=3
        )
    if "options" in option:
        return st.fixed_dictionaries(
            {}, optional={name: values(each) for name, each in option["options"].items()}
        )
    if option["type"] is DATE_TIME:
        return st.datetimes().map(
            lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
        )
    return {"str": TEXT, "float": NUMBERS, "bool": st.booleans()}[option["type"]]


def attributes(resource: str) -> st.SearchStrategy:
    typed = RESOURCES[resource].attributes
    return st.fixed_dictionaries(
        {}, optional={name: values(option) for name, option in typed.items()}
    )


IDS = st.text("aZ/é =", min_size=1, max_size=9).filter(str.strip)
NAMES = TEXT.filter(lambda text: text.strip() and "\0" not in text)
EXTRA = st.text(min_size=1, max_size=5).filter(
    lambda name: name not in RESOURCES[MACHINE].attributes
)
MACHINES = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "attributes": attributes(MACHINE)},
        optional={"extra_attributes": st.dictionaries(EXTRA, JSON, min_size=1, max_size=2)},
    ),
    max_size=4,
)
ROLES = st.lists(
    st.fixed_dictionaries({"id": IDS, "description": NAMES, "attributes": attributes(ROLE)}),
    max_size=3,
)


def wanted(spec, items: list[dict]) -> list[tuple[str, str]]:
    """The name and the body of each item, as it would be sent."""
    found = []
    for item in items:
        params, problems = validated(spec.item_options, spec.constraints, item)
        assert not problems
        asked = spec.resource.wanted({**params, **dict.fromkeys(("force", *spec.shared))})
        body = {
            name: value for name, value in asked.body.items() if value != {}
        }  # no attributes are none given
        found.append((asked.key, json.dumps(body, sort_keys=True)))
    return found


def recorded(resource: str, key: str, body: dict, **more: object) -> dict:
    """An entry, as ledger_info returns it."""
    return {
        "base_url": "https://s.example",
        "resource": resource,
        ("id" if resource == ROLE else "name"): key,
        "state": "done",
        "sent": body,
        "asset": {**dict.fromkeys(ENVELOPE), **body, "id": "i-1"},
        "changed_at": "2026-11-22T10:02:03Z",
        "by": "me@here",
        "settle": [],
        **more,
    }


@pytest.mark.parametrize(
    ("spec", "items"), [(VIRTUAL_MACHINES, MACHINES), (APPLICATION_ROLES, ROLES)]
)
@given(data=st.data())
def test_what_is_written_is_read_as_the_same_list(spec, items, data):
    listed = wanted(spec, data.draw(items))
    resource = spec.resource.operation.resource
    entries = [recorded(resource, key, json.loads(body)) for key, body in listed]
    for entry in entries:
        entry["asset"]["id"] = entry.get("id", "i-1")
    text = csv_of(entries)
    assert wanted(spec, read_csv(text, resource=resource)) == listed
    for each, entry in zip(read_csv(text, entries=True), entries, strict=True):
        assert {name: value for name, value in entry["asset"].items() if value is not None} == {
            name: value for name, value in each["asset"].items() if value is not None
        }


def test_a_cell_is_never_a_formula_for_a_spreadsheet():
    text = csv_of(
        [
            recorded(
                MACHINE,
                "=cmd|'/c calc'!A1",
                {"attributes": {"team": "+1", "ip": "@x", "status": "-"}},
            )
        ]
    )
    assert not [
        cell
        for row in csv.reader(io.StringIO(text))
        for cell in row
        if cell.startswith(("=", "+", "-", "@"))
    ]


def test_what_teams_have_is_read_with_the_types_of_the_resource():
    text = (
        "\ufeffname;cpu;vm_ram;team;subnet.mask;volumes[0].name;volumes[0].size_gb;puppet_classes;"
        "extra_attributes\r\n"
        'web01;4;16.5;"a; b";255.0.0.0;data;"250";base, web;"{""owner"": 7}"\r\n'
        "\r\n"
        "web02;;;{{ 7 }};;;;;\r\n"
    )
    assert read_csv(text) == [
        {
            "name": "web01",
            "attributes": {
                "cpu": 4,
                "vm_ram": 16.5,
                "team": "a; b",
                "subnet": {"mask": "255.0.0.0"},
                "volumes": [{"name": "data", "size_gb": 250}],
                "puppet_classes": ["base", "web"],
            },
            "extra_attributes": {"owner": 7},
        },
        {"name": "web02", "attributes": {"team": "{{ 7 }}"}},
    ]


def test_blanks_around_a_cell_are_none_of_its_value():
    assert read_csv('name , team, ip\n web01 , , 192.0.2.1\t\n  \nweb02,a b,"""x """\n') == [
        {"name": "web01", "attributes": {"ip": "192.0.2.1"}},
        {"name": "web02", "attributes": {"team": "a b", "ip": "x "}},
    ]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (f"name,{'q' * 60}\nweb01,4\n", [f"has the name of column 2 ({'q' * 60}): "]),
        (f"name,{'q' * 61}\nweb01,4\n", [f"has the name of column 2 ({'q' * 60}...): "]),
        ("name,cpus\nweb01,4\n", ["line 1, column 2: there is no cpus (did you mean cpu?)"]),
        ("name,CPU\nweb01,4\n", ["line 1, column 2: there is no CPU (did you mean cpu?)"]),
        (
            "name,volumes[2].name,volumes[0].name\na,b,c\nd,,e\nf,g,\n",
            [
                "line 2, column 2 (volumes[2].name): volumes[1] is not given (also in line 4)",
            ],
        ),
        (
            "name,volumes[0].name,volumes[1].name\na,,b\n",
            ["line 2, column 3 (volumes[1].name): volumes[0] is not given"],
        ),
        (
            "name,cpu\nweb01,four\nweb02,4\n,1\nweb03,x\n",
            [
                'line 2, column 2 (cpu): must be a number, not "four" (also in line 5)',
                "line 4: name is empty",
            ],
        ),
        ("name,cpu\nweb01,4,5\n", ["line 2: it has 3 cells, and there are 2 columns"]),
        ("name\nweb01,4\n", ["line 2: it has 2 cells, and there is 1 column"]),
        ("name,name\na,b\n", ["line 1, column 2: name is there twice"]),
        (
            'name,volumes,volumes[0].name\na,"[]",b\n',
            ["line 2, column 3 (volumes[0].name): another column has a part"],
        ),
        (
            "name,resource\na,machine\n",
            [
                'line 2, column 2 (resource): "machine" is none (did you mean compute_virtual_machine?)'
            ],
        ),
        ('name,volumes\na,"[{"\n', ["line 2, column 2 (volumes): must be a list"]),
        (
            "name,resource\na,zzz\n",
            [f'line 2, column 2 (resource): "zzz" is none (there are {ROLE}, {MACHINE})'],
        ),
        ('name,team\na,"b\n', ["line 2: it is not CSV"]),
        ("name,subnet.masq\na,b\n", ["line 1, column 2: there is no subnet.masq"]),
        ("name,volumes[0][1]\na,b\n", ["line 1, column 2: there is no volumes[0][1]"]),
        ('name,team\n"a\nb",x\nc,d,e\n', ["line 4: it has 3 cells"]),
        (
            "name,asset,extra_attributes\na,[],x\n",
            ["line 2, column 2 (asset): ", "line 2, column 3 (extra_attributes): "],
        ),
        (
            f"resource,name,id,cpu,login\n{ROLE},,r,4,\n{MACHINE},a,,4,true\n",
            [
                "line 2, column 4 (cpu): this row's resource has no such field",
                "line 3, column 5 (login): this row's resource has no such field",
            ],
        ),
        (
            f"resource,name,id,cpus\n{ROLE},,r,\n{MACHINE},a,,4\n",
            ["line 1, column 4: there is no cpus"],
        ),
    ],
)
@pytest.mark.parametrize("entries", [False, True])
def test_all_that_is_wrong_is_told_with_its_line_and_column(text, problems, entries):
    with pytest.raises(InvalidInput) as refused:
        read_csv(text, entries)
    assert [problem for problem in problems if problem not in refused.value.msg] == []
    assert refused.value.msg.count("line ") >= len(problems)
    assert refused.value.msg.count("there is no") <= len(problems)  # once, whatever rows there are


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_ends_are_read(end):
    assert read_csv(end.join(["name;cpu", "web01;4", ""])) == [
        {"name": "web01", "attributes": {"cpu": 4}}
    ]


def test_machines_and_roles_of_one_ledger_are_read_from_one_file():
    """Each row has the cells of its own resource alone."""
    machine, role = (
        {"name": "web01", "attributes": {"cpu": 4}},
        {"name": "r", "attributes": {"login": True}},
    )
    text = csv_of([recorded(MACHINE, "web01", machine), recorded(ROLE, "i-1", role)])
    assert [
        (each["resource"], each["asset"]["attributes"]) for each in read_csv(text, entries=True)
    ] == [(MACHINE, {"cpu": 4}), (ROLE, {"login": True})]


def test_what_is_in_doubt_is_settled_by_the_cells_that_are_filled_in():
    entries = [
        recorded(
            MACHINE, name, {"name": name, "attributes": {"cpu": 4}}, state="unknown", asset=None
        )
        for name in ("there", "gone", "open")
    ]
    rows = [*csv.DictReader(io.StringIO(csv_of(entries)))]
    rows[0]["id"], rows[1]["state"] = "i-7", "absent"
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    since = entries[0]["changed_at"]
    of_each = {"resource": MACHINE, "base_url": "https://s.example", "changed_at": since}
    assert read_csv(file.getvalue(), entries=True) == [
        {
            "line": 2,
            **of_each,
            "name": "there",
            "state": "unknown",
            "asset": {"id": "i-7", "name": "there", "attributes": {"cpu": 4}},
        },
        {"line": 3, **of_each, "name": "gone", "state": "absent"},
        {"line": 4, **of_each, "name": "open", "state": "unknown"},
    ]


@pytest.mark.parametrize(
    "name",
    [
        "0012",
        "12.10",
        "1E5",
        "1e5",
        "1,5",
        "1.000",
        "1'000",
        "12345678901234567",
        "1-2",
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        "1/2/26",
        "3.4.2026",
        "1:30",
        "10:20:30",
        "50%",
        "TRUE",
        "false",
        "WAHR",
        "MAR1",
        "Sep 5",
        "5-Mar",
        "dez 10",
        "=1+1",
        "+1",
        "-1a",
        "@x",
    ],
)
def test_text_that_a_spreadsheet_would_change_is_written_as_json(name):
    (row,) = csv.DictReader(
        io.StringIO(csv_of([recorded(MACHINE, name, {"name": name}, asset={"id": name})]))
    )
    assert (row["name"], row["id"]) == (json.dumps(name), json.dumps(name))
    (entry,) = read_csv(
        csv_of([recorded(MACHINE, name, {"name": name}, asset={"id": name})]), entries=True
    )
    assert (entry["name"], entry["asset"]["id"]) == (name, name)


@pytest.mark.parametrize(
    "name", ["web01", "12", "10.20.30.41", "fe80::1", "0b5f1a52-7d3c", "00:11:22:33:44:55"]
)
def test_text_that_a_spreadsheet_keeps_is_written_as_it_is(name):
    (row,) = csv.DictReader(
        io.StringIO(csv_of([recorded(MACHINE, name, {"name": name}, asset={"id": name})]))
    )
    assert row["name"] == name


def test_a_row_with_too_few_cells_is_refused():
    with pytest.raises(InvalidInput, match="line 3: it has 1 cell, and there are 2 columns"):
        read_csv("name,cpu\nweb01,4\nweb02\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"resource": "virtual_machine"},
            "(web01): the resource virtual_machine is none; there are ",
        ),
        ({"resource": ["x\x1b"]}, "(web01): the resource ['x\\x1b'] is none; there are "),
        ({"resource": None}, "(web01): the resource None is none"),
        ("sent", "is no entry as ledger_info returns it: it lacks sent"),
        ("changed_at", "is no entry as ledger_info returns it: it lacks changed_at"),
        (None, "is no entry as ledger_info returns it: it is no dict"),
    ],
)
def test_what_is_no_entry_is_named_and_not_written(change, says):
    entry = recorded(MACHINE, "web01", {"name": "web01"}, asset={"id": "1"})
    if isinstance(change, dict):
        wrong = {**entry, **change}
    else:
        wrong = {key: value for key, value in entry.items() if key != change} if change else "web01"
    for write in (csv_of, FilterModule().filters()["to_csv"]):
        with pytest.raises((InvalidInput, AnsibleFilterError)) as refused:
            write([entry, wrong])
        assert str(refused.value).startswith("to_csv: [1] ")
        assert says in str(refused.value)


def test_to_csv_needs_a_list():
    with pytest.raises(AnsibleFilterError, match="to_csv: it needs a list of entries"):
        FilterModule().filters()["to_csv"]({"entries": []})


@pytest.mark.parametrize("option", ["text", "tekst"])
def test_an_unknown_option_is_refused_also_by_the_name_of_the_parameter(option):
    from_csv = FilterModule().filters()["from_csv"]
    with pytest.raises(AnsibleFilterError, match=rf"^from_csv: .*{option}"):
        from_csv("name\nweb01\n", **{option: "name"})
