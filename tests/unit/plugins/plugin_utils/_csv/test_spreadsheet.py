# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spreadsheets as teams have them: their headings and decimal commas, and what is said of faults."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.infrastructure.services.plugins.filter.csv import from_csv, to_csv
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    LEDGER_ENTRIES,
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)

HEADINGS = {
    "Team": "team",
    "RAM (GB)": "vm_ram",
    "Hostname": "name",
    "IP-Adresse": "ip",
    "CPUs": "cpu",
    "Platte (GB)": "volumes[0].size_gb",
    "Platte": "volumes[0].name",
    "Angelegt": "creation_date",
}
LEFT_OUT = ["Bestellt am", "Bemerkung"]
OPTIONS = {"columns": HEADINGS, "ignore": LEFT_OUT, "decimal": ","}
LONGEST = 2_500  # characters of what is said


def machine(number: int) -> dict:
    """A row of the sheet."""
    return {
        "Bestellt am": f"{number % 28 + 1:02}.11.2026",
        "Team": "Läden; Köln",
        "RAM (GB)": "16,5",
        "Hostname": f"web{number:03}",
        "IP-Adresse": f"192.0.2.{number % 250}",
        "Bemerkung": "bitte bis Freitag\r\noder Montag" if number % 50 == 0 else "",
        "CPUs": "4",
        "Platte (GB)": "1.250",
        "Platte": "data",
        "Angelegt": f"{number % 28 + 1:02}.02.2026" if number % 2 else "24.12.2026 18:00",
    }


def created(number: int) -> str:
    """When a machine of the sheet was created."""
    return f"2026-02-{number % 28 + 1:02}T00:00:00Z" if number % 2 else "2026-12-24T18:00:00Z"


def sheet(rows: list[dict]) -> str:
    """The rows as a German spreadsheet program saves them."""
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0], delimiter=";", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return f"\ufeff{file.getvalue()}"


def fault(text: str, **options: object) -> str:
    """What is said of a text that is refused."""
    with pytest.raises(AnsibleFilterError) as refused:
        from_csv(text, **options)
    return str(refused.value)


WRONG = {
    7: {"CPUs": "vier"},
    20: {"RAM (GB)": "16.5"},
    41: {"Hostname": ""},
    66: {"Angelegt": "Weihnachten"},
    99: {"Platte (GB)": "groß"},
    130: {"RAM (GB)": "viel"},
    200: {"Angelegt": "24.13.2026"},
    222: {"Platte (GB)": "1.25"},
    301: {"Hostname": ""},
    350: {"Platte (GB)": "1,2,3"},
    444: {"RAM (GB)": "=A1"},
    499: {"CPUs": "zwei"},
}


def test_five_hundred_rows_with_twelve_wrong_ones_are_told_briefly_and_mended_are_the_fleet():
    rows = [machine(number) for number in range(500)]
    broken = [{**row, **WRONG.get(number, {})} for number, row in enumerate(rows)]
    said = fault(sheet(broken), **OPTIONS)
    assert len(said) < LONGEST
    assert len(WRONG) == 12
    for text in (
        'column 7 (CPUs): must be a number with a decimal comma, not "vier" (also in line ',
        'column 3 (RAM (GB)): must be a number with a decimal comma, not "16.5" (also in lines ',
        'column 8 (Platte (GB)): must be a number with a decimal comma, not "groß" (also in lines ',
        "name is empty (also in line ",
        'column 10 (Angelegt): must be a date-time such as 2026-01-02T03:04:05Z, not "Weihnachten"',
        '2026-01-02T03:04:05Z (month must be in 1..12), not "24.13.2026"',
    ):
        assert text in said
    assert said.count("line") == 2 * 4 + 2  # each cause once, with its first line and the others
    fleet = yaml.safe_load(
        "\n".join(
            f"- name: web{number:03}\n"
            f"  attributes: {{team: Läden; Köln, vm_ram: 16.5, ip: 192.0.2.{number % 250}, cpu: 4,"
            f" volumes: [{{name: data, size_gb: 1250}}], creation_date: '{created(number)}'}}"
            for number in range(500)
        )
    )
    assert from_csv(sheet(rows), **OPTIONS) == fleet


def saved_by_gnumeric(rows: list[dict]) -> str:
    """The sheet as gnumeric 1.12 saves it in a German locale, with semicolons.

    No byte order mark, thousands without points, dates with the year first, a time with seconds;
    quoted is what is not letters and digits. In a column of nothing but numbers such as 1.250, it
    takes the point for that of decimals and saves 1,25, which no reader can notice.
    """

    def cell(value: str) -> str:
        if re.fullmatch(r"\d\d?\.\d\d?\.\d{4}( \d\d:\d\d)?", value):
            date, _blank, time = value.partition(" ")
            value = "/".join(reversed(date.split("."))) + (f" {time}:00" if time else "")
        elif re.fullmatch(r"\d{1,3}(\.\d{3})+(,\d+)?", value):
            value = value.replace(".", "")
        return value if re.fullmatch(r"[\w/.-]*", value) else f'"{value}"'

    lines = [rows[0], *(row.values() for row in rows)]
    return "".join(f"{';'.join(map(cell, line))}\n" for line in lines)


def test_a_sheet_that_a_spreadsheet_program_has_opened_and_saved_is_the_same_fleet():
    sizes = {0: "1.250", 1: "2.500,5"}  # gnumeric finds out what a point means from a column
    rows = [{**machine(number), "Platte (GB)": sizes[number % 2]} for number in range(500)]
    saved = saved_by_gnumeric(rows)
    assert "2026/12/24 18:00:00" in saved
    assert from_csv(saved, **OPTIONS) == from_csv(sheet(rows), **OPTIONS)


def test_each_wrong_row_is_named_by_its_line():
    rows = [machine(number) for number in range(1, 30)]
    for number in (3, 5, 8):
        rows[number]["CPUs"] = f"{number}?"
    said = fault(sheet(rows), **OPTIONS)
    assert said == (
        "from_csv: line 5, column 7 (CPUs): must be a number with a decimal comma, not"
        ' "3?" (also in lines 7, 10)'
    )


def test_one_cause_in_each_row_is_told_once():
    rows = [{"name": f"vm{number}", "creation_date": "24.12.2026"} for number in range(500)]
    said = fault(sheet(rows))
    assert said.startswith(
        "from_csv: line 2, column 2 (creation_date): must be a date-time such as"
    )
    assert said.endswith(
        'not "24.12.2026"; if its numbers have decimal commas, set decimal to "," (also in lines'
        " 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 489 more)"
    )


def test_however_many_causes_there_are_little_is_said():
    rows = [{"name": f"vm{number}"} for number in range(200)]
    for number, row in enumerate(rows):
        row.update({f"volumes[{place}].size_gb": "1" for place in range(60)})
        row[f"volumes[{number % 60}].size_gb"] = "x"
    said = fault(sheet(rows))
    assert len(said) < LONGEST
    assert said.endswith(" more causes")
    said = fault(sheet([{f"{'Spalte' * 30} {number}": "x" for number in range(300)}]))
    assert len(said) < LONGEST


def test_headings_that_no_field_has_come_alone_and_once():
    assert fault("Hostname;CPU;Kostenstelle;qqq;CPU\nweb01;x;y;z;1\n") == (
        "from_csv: line 1: there is no column name; line 1, column 1: there is no Hostname (did you"
        " mean name?); line 1, column 2: there is no CPU (did you mean cpu?); line 1, column 5: CPU"
        " is there twice; line 1: no field has the name of column 3 (Kostenstelle), 4 (qqq): name the"
        " field of each with columns, or leave it out with ignore"
    )


def test_a_column_without_heading_and_cells_is_none():
    assert from_csv("name;cpu;;\nweb01;4;;\n") == [{"name": "web01", "attributes": {"cpu": 4}}]
    assert "no field has the name of column 3 ()" in fault("name;cpu;;\nweb01;4;x;\n")


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "sep=;;;"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_the_first_line_may_name_the_delimiter(first, start):
    text = f"{start}{first}\r\nname;team\r\nweb01;a,b,c\r\n"
    assert from_csv(text) == [{"name": "web01", "attributes": {"team": "a,b,c"}}]
    assert "line 3, column 2 (cpu)" in fault(text.replace("team", "cpu"))
    assert from_csv("sep=|\nname|team\nweb01|;\n")[0]["attributes"] == {"team": ";"}


@pytest.mark.parametrize(
    ("cell", "decimal", "number"),
    [
        ("16,5", ",", 16.5),
        ("1.000", ",", 1000),
        ("1.000.000,25", ",", 1000000.25),
        ("-3,5", ",", -3.5),
        ("4", ",", 4),
        ("1E+05", ",", 100000),
        ('"""16.5"""', ",", 16.5),  # as to_csv writes it
        ("1.000", ".", 1),
        ("16.5", ".", 16.5),
        ("16.5", "", 16.5),
        ("0.125", "", 0.125),
        ('"""1.000"""', "", 1),
    ],
)
def test_numbers_are_read_as_they_are_written(cell, decimal, number):
    assert from_csv(f"name;cpu\nvm;{cell}\n", decimal=decimal) == [
        {"name": "vm", "attributes": {"cpu": number}}
    ]


@pytest.mark.parametrize(
    ("cell", "decimal", "said"),
    [
        ("1.000", "", '"1.000" may be thousands or have decimals; set decimal to "," or "."'),
        ("12.345.678", "", '"12.345.678" may be thousands or have decimals'),
        (
            "16,5",
            "",
            'must be a number, not "16,5"; if the comma begins decimals, set decimal to ","',
        ),
        ("16,5", ".", 'must be a number, not "16,5"; if the comma begins decimals'),
        ("16.5", ",", 'must be a number with a decimal comma, not "16.5"'),
        ("1.0000", ",", "must be a number with a decimal comma"),
        ("1,000,000", ",", "must be a number with a decimal comma"),
    ],
)
def test_a_number_that_could_be_two_is_refused(cell, decimal, said):
    assert f"line 2, column 2 (cpu): {said}" in fault(f"name;cpu\nvm;{cell}\n", decimal=decimal)


@pytest.mark.parametrize(
    ("cell", "decimal", "moment"),
    [
        ("24.12.2026", ",", "2026-12-24T00:00:00Z"),
        ("24.12.2026 18:00", ",", "2026-12-24T18:00:00Z"),
        ("1.2.2026 9:05:07", ",", "2026-02-01T09:05:07Z"),
        ("2026/12/24", ",", "2026-12-24T00:00:00Z"),
        ("2026/2/1 18:00:00", ".", "2026-02-01T18:00:00Z"),
        ("2026-12-24T18:00:00+01:00", ",", "2026-12-24T17:00:00Z"),
        ('"""2026-12-24T18:00:00Z"""', ",", "2026-12-24T18:00:00Z"),  # as to_csv writes it
        ("2026-12-24T18:00:00Z", "", "2026-12-24T18:00:00Z"),
    ],
)
def test_dates_are_read_as_the_file_is_said_to_write_them(cell, decimal, moment):
    assert from_csv(f"name;creation_date\nvm;{cell}\n", decimal=decimal) == [
        {"name": "vm", "attributes": {"creation_date": moment}}
    ]


@pytest.mark.parametrize(
    ("cell", "decimal", "hint"),
    [
        ("24.12.2026", "", '; if its numbers have decimal commas, set decimal to ","'),
        ("24.12.2026 18:00", ".", '; if its numbers have decimal commas, set decimal to ","'),
        ("2026/12/24", "", '; if a spreadsheet wrote the file, set decimal to "," or "."'),
        ("24.12.26", ",", ""),
        ("24/12/2026", ",", ""),
        ("12/24/2026", ".", ""),
        ("24-Dez-2026", ",", ""),
        ("2026-12-24", ",", ""),
        ("24.12.2026 25:00", ",", ""),
        ("31.02.2026", ",", ""),
        ("24.12.2026 18:00 Uhr", ",", ""),
        ("46380", ",", ""),  # a date as a number, as workbooks store it
    ],
)
def test_a_date_is_never_guessed(cell, decimal, hint):
    said = fault(f"name;creation_date\nvm;{cell}\n", decimal=decimal)
    begin = (
        "from_csv: line 2, column 2 (creation_date): must be a date-time such as 2026-01-02T03:04"
    )
    assert said.startswith(begin)
    assert said.endswith(f', not "{cell}"{hint}')


def test_a_point_between_commas_is_no_riddle():
    assert from_csv("name,cpu\nvm,1.000\n") == [{"name": "vm", "attributes": {"cpu": 1}}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "name;team\nvm;Köln\n".encode("latin-1"),
            "the text is not UTF-8 in line 2. Save the sheet as",
        ),
        (
            "name;team\nvm;Köln\n".encode("utf-16"),
            "the text is UTF-16, which some programs call Unicode",
        ),
        ("name;team\nvm;x\n".encode("utf-16-le"), "the text is UTF-16"),
        (
            b"PK\x03\x04\x14\x00\x06\x00[Content_Types].xml",
            "the text is a workbook. Save the sheet as CSV",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", "the text is a workbook. Save the sheet as CSV"),
    ],
)
def test_what_is_no_text_is_called_what_it_is(content, said):
    text = content.decode("utf-8", "surrogateescape")  # as the lookup `file` does
    assert said in fault(text)


@pytest.mark.parametrize("field", ["description", "platform", "tenant"])
def test_a_field_that_is_not_sent_for_a_machine_is_refused_where_it_is_filled(field):
    said = fault(f"name,{field}\nweb01,\nweb02,x\n")
    assert f"line 3, column 2 ({field}): this row's resource has no such field" in said
    assert from_csv(f"name,{field}\nweb01,\n") == [{"name": "web01"}]
    (entry,) = from_csv(f"name,id,{field}\nweb02,i-2,x\n", entries=True)
    assert entry["asset"][field] == "x"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimiter": ";;"}, 'delimiter: must be one character such as ;, not ";;"'),
        ({"decimal": "comma"}, 'decimal: must be "," or ".", not "comma"'),
        ({"resource": "machine"}, "resource: must be one of"),
        ({"column": {}}, "column: there is no such option (did you mean columns?)"),
        ({"columns": ["a"]}, "columns: must be a dict"),
    ],
)
def test_wrong_options_are_named(options, said):
    assert said in fault("name\nvm\n", **options)


def test_ignore_may_be_text_with_commas():
    assert from_csv("name,a,b\nvm,1,2\n", ignore="a, b") == [{"name": "vm"}]


@pytest.mark.parametrize("given", [[{"name": "vm"}], {}, None, 7, True, b"name\nvm\n"], ids=str)
def test_what_is_no_text_is_refused(given):
    assert "it needs the text of a CSV file" in fault(given)


@pytest.mark.parametrize("given", [datetime.date(2026, 1, 2), b"x"], ids=str)
def test_an_option_of_a_type_that_json_lacks_is_named(given):
    assert "entries: must be true or false" in fault("name\nvm\n", entries=given)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('{"a": 1, "a": 2}', "it contains the same key twice in one object"),
        ('{"a": NaN}', "it contains NaN, which is not JSON"),
        ('{"a": 1e999}', "it contains a number beyond the range"),
        ('{"a": "\\ud800"}', "it is not UTF-8, or contains a lone surrogate"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "it is nested deeper than 64 levels"),
        ('{"a":' * 100_000, "it is nested deeper than 64 levels"),
        ('{"a": ' + "9" * 5000 + "}", "it contains an integer of more than 4300 digits"),
    ],
)
def test_json_in_a_cell_is_read_as_strictly_as_an_answer(cell, said):
    quoted = cell.replace('"', '""')
    problem = fault(f'name,extra_attributes\nvm,"{quoted}"\n')
    assert problem.startswith(f"from_csv: line 2, column 2 (extra_attributes): {said}")


def test_a_heading_may_be_as_long_as_a_cell():
    assert "there is no column name" in fault("a" * 200_000 + ",b\nvm,1\n")


def test_a_long_name_within_a_cell_is_cut_in_the_message():
    problem = fault('name;volumes\nvm;"[{""' + "x" * 9_000 + '"": 1}]"\n')
    assert problem.startswith("from_csv: line 2, column 2 (volumes)[0].xxx")
    assert len(problem) < 600


def test_a_delimiter_in_a_message_is_printable():
    assert fault('name\tteam\nvm\t"a"b\n').isprintable()


@pytest.mark.parametrize(
    ("spec", "option"), [(VIRTUAL_MACHINES, "virtual_machines"), (LEDGER_ENTRIES, "entries")]
)
def test_a_forgotten_filter_is_named(spec, option):
    problem = validate(spec, {option: "name,cpu\nweb01,4\n", "ledger": "x"}).problem
    assert (
        f"{option}: must be a list (CSV becomes one by | infrastructure.services.from_csv), not"
        in problem
    )


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_what_is_written_with_a_delimiter_is_read_back(delimiter):
    attributes = {"cpu": 1.125, "vm_ram": 4, "team": "a;b,c|d\te"}
    entry = {
        "resource": "compute_virtual_machine",
        "name": "vm",
        "sent": {"name": "vm", "attributes": attributes},
        "asset": {},
        "changed_at": None,
    }
    text = to_csv([entry], delimiter=delimiter)
    assert text.startswith(f"name{delimiter}id{delimiter}")
    assert from_csv(text) == [{"name": "vm", "attributes": attributes}]
    assert from_csv(text, decimal="," if delimiter != "," else ".")[0]["attributes"] == attributes


def test_to_csv_refuses_a_delimiter_that_is_none():
    with pytest.raises(AnsibleFilterError, match="delimiter: must be one character"):
        to_csv([], delimiter=json.dumps(";"))
