"""CSV and JSON files: what is read, what is refused and with which words, what is written."""

from __future__ import annotations

import csv
import datetime
import io
import json
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.infrastructure.services.plugins.filter.from_csv import from_csv
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv import (
    entries_in,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.listing import (
    row_of,
    write_rows,
)
from hypothesis import given
from hypothesis import strategies as st
from support import VIRTUAL_MACHINES, validate

MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
SINCE = "2026-11-22T10:02:03Z"


def machine(**attributes: object) -> list[dict]:
    return [{"name": "vm", "attributes": attributes}]


def fault(text: object, /, **options: object) -> str:
    """What is said of a text that is refused."""
    with pytest.raises(AnsibleFilterError) as refused:
        from_csv(text, **options)
    return str(refused.value)


READ = {
    "types": ("name,cpu,team\nvm,4,{{ 7 }}\n", {}, machine(cpu=4, team="{{ 7 }}")),
    "a list of dicts": (
        "name,volumes[0].name,volumes[0].size_gb,volumes[1].name\nvm,a,5,b\n",
        {},
        machine(volumes=[{"name": "a", "size_gb": 5}, {"name": "b"}]),
    ),
    "a list as JSON": (
        'name,volumes\nvm,"[{""name"": ""a""}]"\n',
        {},
        machine(volumes=[{"name": "a"}]),
    ),
    "extra attributes": (
        'name,extra_attributes\nvm,"{""owner"": 7}"\n',
        {},
        [{"name": "vm", "extra_attributes": {"owner": 7}}],
    ),
    "an id": ("name,id\nvm,7\nnew,\n", {}, [{"name": "vm", "id": "7"}, {"name": "new"}]),
    "text as JSON": ('name,team\nvm,"""=1+1 """\n', {}, machine(team="=1+1 ")),
    "text that is no JSON": ("name,team\nvm,[a]\n", {}, machine(team="[a]")),
    "attributes.name": ("name,attributes.name\nvm,x\n", {}, machine(name="x")),
    "address": ("name,address\nvm,192.0.2.1\n", {}, machine(ip="192.0.2.1")),
    "empty cells": ("name,cpu,team\nvm,,\n", {}, [{"name": "vm"}]),
    "empty rows": ("\n , \nname,cpu\n\nvm,4\n,\n", {}, machine(cpu=4)),
    "an empty column": ("name;cpu;;\nvm;4;;\n", {}, machine(cpu=4)),
    "a byte order mark": ("\ufeffname;cpu\nvm;4\n", {}, machine(cpu=4)),
    "old line ends": ("name;cpu\rvm;4\r", {}, machine(cpu=4)),
    "quotes": ('name;team\n"vm";"a;""b"""\n', {}, machine(team='a;"b"')),
    "delimiter": ("name:cpu\nvm:4\n", {"delimiter": ":"}, machine(cpu=4)),
    "columns": ("Host,CPUs\nvm,4\n", {"columns": {"Host": "name", "CPUs": "cpu"}}, machine(cpu=4)),
    "ignore": ("Ordered,name\nx,vm\n", {"ignore": ["Ordered"]}, [{"name": "vm"}]),
    "a point": ("name;cpu\nvm;16.5\n", {}, machine(cpu=16.5)),
    "a decimal comma": ("name;cpu\nvm;16,5\n", {"decimal": ","}, machine(cpu=16.5)),
    "a date-time": (
        "name,creation_date\nvm,2026-12-24T18:00:00+01:00\n",
        {},
        machine(creation_date="2026-12-24T17:00:00Z"),
    ),
    "no rows": ("name,cpu\n", {}, []),
    "nothing": ("", {}, []),
}


@pytest.mark.parametrize("name", READ)
def test_what_people_write_is_read(name):
    text, options, machines = READ[name]
    assert from_csv(text, **options) == machines


REFUSED = {
    "the near name": ("name,cpus\nvm,4\n", {}, "(did you mean cpu?)"),
    "a heading like none": (
        "name,Ordered\nvm,4\n",
        {},
        "column 2 (Ordered): there is no such field (remove it; from_csv has columns and ignore)",
    ),
    "a cell without heading": ("name;cpu;\nvm;4;x\n", {}, "line 1, column 3 ()"),
    "an alias beside": ("name,ip,address\nvm,4,4\n", {}, "column 3 (address): another column has"),
    "a part beside": (
        "name,volumes,volumes[0].name\nvm,,a\n",
        {},
        "line 1, column 3 (volumes[0].name): another column has this field or a part of it",
    ),
    "a path of nothing": (
        "name,volumes[0][1]\nvm,x\n",
        {},
        "column 2 (volumes[0][1]): there is no",
    ),
    "a far element": ("name,volumes[999999].name\nvm,x\n", {}, ": there is no such field"),
    "a path without end": (f"name,volumes{'[0]' * 3000}\nvm,x\n", {}, ": there is no such field"),
    "a gap": (
        "name,volumes[1].name\nvm,x\n",
        {},
        "line 2: attributes.volumes[0]: must be a dict",
    ),
    "a name that is empty": ("name,cpu\n,4\n", {}, "line 2, column 1 (name): is missing"),
    "no column name": ("cpu\n4\n5\n", {}, "lines 2, 3: name: is missing"),
    "too many cells": ("name,cpu\nvm,4,5\n", {}, "line 2: 3 cells instead of 2"),
    "too few cells": ("name,cpu\na,1\nvm\n", {}, "line 3: 1 cells instead of 2"),
    "no CSV": ('name,team\nvm,"b\n', {}, "line 2: it is not CSV"),
    "a wrong number": ("name,cpu\nvm,x\n", {}, 'line 2, column 2 (cpu): must be a number, not "x"'),
    "a point with decimal commas": (
        "name;cpu\nvm;1.250\n",
        {"decimal": ","},
        'line 2, column 2 (cpu): must be a number with a decimal comma, not "1.250"',
    ),
    "a part of JSON": (
        'name,volumes\nvm,"[{""nme"": 1}]"\n',
        {},
        "line 2, column 2 (volumes)[0].nme: there is no such option (did you mean name?)",
    ),
    "a key twice": (
        'name,extra_attributes\nvm,"{""a"": 1, ""a"": 2}"\n',
        {},
        "column 2 (extra_attributes): it contains the same key twice",
    ),
    "too deep": (f"name,extra_attributes\nvm,{'[' * 70 + ']' * 70}\n", {}, "deeper than 64 levels"),
    "cp1252": (
        "name;team\nvm;Köln\n".encode("cp1252").decode("utf-8", "surrogateescape"),
        {},
        "Save the sheet as CSV UTF-8, or convert the file: iconv -f WINDOWS-1252 -t UTF-8",
    ),
    "a delimiter": ("name\n", {"delimiter": ";;"}, "delimiter: must be one character such as ;"),
    "a decimal": ("name\n", {"decimal": "comma"}, "decimal: must be one of"),
    "an unknown option": (
        "name\n",
        {"column": {}},
        "column: there is no such option (did you mean",
    ),
    "ignore": ("name\n", {"ignore": datetime.date(2026, 1, 2)}, "ignore: must be a list"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_with_its_place(name):
    text, options, said = REFUSED[name]
    assert said in fault(text, **options)


def test_all_faults_are_told_at_once_and_each_once():
    text = "name,cpus,vm_ram\na,1,x\nb,1,2\nc,1,x\nd,1\n,1,y\n"
    assert fault(text) == (
        "from_csv: line 1, column 2 (cpus): there is no such field (did you mean cpu?);"
        ' lines 2, 4, column 3 (vm_ram): must be a number, not "x"; line 5: 2 cells instead of 3;'
        " line 6, column 1 (name): is missing: set it;"
        ' line 6, column 3 (vm_ram): must be a number, not "y"'
    )


def test_a_forgotten_filter_is_named():
    problem = validate(VIRTUAL_MACHINES, {"virtual_machines": "name,cpu\nweb01,4\n"}).problem
    assert (
        "must be a list of dicts (CSV becomes one by | infrastructure.services.from_csv)" in problem
    )


# --- entries of the ledger


@pytest.mark.parametrize(
    ("row", "entry"),
    [
        (",vm,,i-1,,", {"name": "vm", "asset": {"id": "i-1", "name": "vm"}}),
        (
            f",vm,unknown,i-1,{SINCE},192.0.2.1",
            {
                "name": "vm",
                "state": "unknown",
                "changed_at": SINCE,
                "asset": {"id": "i-1", "name": "vm", "attributes": {"ip": "192.0.2.1"}},
            },
        ),
        (",vm,unknown,,,", {"name": "vm", "state": "unknown"}),
        (f"{ROLE},,unknown,r,,", {"resource": ROLE, "id": "r", "state": "unknown"}),
        (f"{ROLE},,absent,r,,", {"resource": ROLE, "id": "r", "state": "absent"}),
        (
            f"{ROLE},one,present,r,,",
            {
                "resource": ROLE,
                "id": "r",
                "state": "present",
                "asset": {"id": "r", "name": "one"},
            },
        ),
    ],
)
def test_a_row_says_what_is_known_of_an_entry(tmp_path, row, entry):
    file = tmp_path / "entries.csv"
    file.write_text(f"resource,name,state,id,since,address\n{row}\n", encoding="utf-8")
    assert entries_in(str(file)) == [{"line": 2, "resource": MACHINE, **entry}]


def recorded(name: str, **more: object) -> dict:
    """An entry, as ledger_info returns it."""
    return {
        "resource": MACHINE,
        "name": name,
        "state": "unknown",
        "sent": {"name": name, "attributes": {"cpu": 4}},
        "asset": None,
        "changed_at": SINCE,
        "by": "me@here",
        **more,
    }


def rows_of(file: Path) -> list[dict]:
    return [*csv.DictReader(io.StringIO(file.read_text(encoding="utf-8")))]


def test_a_file_has_the_columns_that_settle_an_entry(tmp_path):
    file = tmp_path / "doubt.csv"
    role = {"id": "r", "name": "one", "attributes": {"login": True}}
    other = recorded("", resource=ROLE, id="r", state="done", asset=role)
    del other["name"]
    write_rows(str(file), [*map(row_of, [recorded("web01"), other])])
    assert file.read_text(encoding="utf-8").splitlines() == [
        "resource,name,state,since,id,address",
        f'{MACHINE},web01,unknown,"""{SINCE}""",,',
        f'{ROLE},one,done,"""{SINCE}""",r,',
    ]


TEXT = st.text(min_size=1) | st.sampled_from(
    ["=1+1", "-5", "[]", "{}", '"', "007", " x ", "a\r\nb"]
)


@given(names=st.lists(TEXT, max_size=3), identifier=TEXT, delimiter=st.sampled_from(",;\t|"))
def test_what_is_written_is_read_as_the_same_and_no_cell_is_a_formula(
    tmp_path_factory, names, identifier, delimiter
):
    file = tmp_path_factory.mktemp("csv") / "entries.csv"
    asset = {"id": identifier, "attributes": {"ip": identifier}}
    rows = [row_of(recorded(name, asset=asset)) for name in names]
    write_rows(str(file), rows, delimiter)
    with file.open(encoding="utf-8", newline="") as stream:
        cells = [cell for row in csv.reader(stream, delimiter=delimiter) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [
        (each["name"], each["asset"]["id"], each["asset"]["attributes"]["ip"], each["changed_at"])
        for each in entries_in(str(file), delimiter)
    ] == [(name, identifier, identifier, SINCE) for name in names]


CHANGED = [
    *("0012", "12.10", "1E5", "1,5", "1'000", "12345678901234567", "1-2", "2026-01-02", "1:30"),
    *("2026-01-02T03:04:05Z", "3.4.2026", "Sep 5", "50%", "=1+1", "+1", "-1a", "@x", " x", "[]"),
]
KEPT = ["web01", "12", "10.20.30.41", "web-01.example", "Läden"]


@pytest.mark.parametrize("name", [*CHANGED, *KEPT])
def test_text_is_json_where_a_spreadsheet_would_run_or_change_it(tmp_path, name):
    write_rows(str(tmp_path / "x.csv"), [row_of(recorded(name))])
    (row,) = rows_of(tmp_path / "x.csv")
    assert row["name"] == (name if name in KEPT else json.dumps(name))


# --- files

ENTRIES = [{"name": "web01", "state": "absent"}]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, " cannot be read: "),
        ("x.csv", b"name\n\xff\n", ": line 2 is not UTF-8"),
        ("x.csv", b"name,cpus\na,b\n", ": line 1, column 2 (cpus): there is no such field"),
        ("x.csv", b"name,asset\na,{}\n", ": line 1, column 2 (asset): there is no such field"),
        ("x.json", "[]".encode("utf-16"), " is not JSON ("),
        ("x.json", b"", " is not JSON (Expecting value"),
        ("x.json", b"[" * 100_000, "it is nested deeper than 64 levels"),
        ("x.json", b'[{"name": "a", "name": "b"}]', "it contains the same key twice"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content, said):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        entries_in(str(file))
    assert refused.value.msg.startswith(f"file: {file}")
    assert said in refused.value.msg


def test_a_file_with_content_is_not_overwritten(tmp_path):
    file = tmp_path / "entries.csv"
    file.write_text("filled in", encoding="utf-8")
    with pytest.raises(InvalidInput, match="exists and is not empty"):
        write_rows(str(file), ENTRIES)
    assert file.read_text(encoding="utf-8") == "filled in"
