# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A JSON file of entries is read as strictly as an answer of the service."""

from __future__ import annotations

import json

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import InvalidInput
from ansible_collections.infrastructure.services.plugins.plugin_utils._csv.entry_files import (
    entries_in,
    write_entries,
)

ENTRIES = [{"name": "web01", "state": "absent"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_json_in_any_encoding_that_json_had_is_read(tmp_path, encoding):
    file = tmp_path / "entries.json"
    file.write_text(json.dumps(ENTRIES), encoding=encoding)
    assert entries_in(str(file)) == ENTRIES


@pytest.mark.parametrize(
    ("content", "said"), [(b"name\n\xff\n", "is not UTF-8 in line 2"), (None, "cannot be read: ")]
)
def test_a_csv_file_that_cannot_be_read_is_refused(tmp_path, content, said):
    file = tmp_path / "entries.csv"
    if content:
        file.write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        entries_in(str(file))
    assert refused.value.msg.startswith(f"file: {file} {said}")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name,cpu\nweb01,four\n", 'line 2, column 2 (cpu): must be a number, not "four"'),
        ("nme\nweb01\n", "line 1: there is no column name"),
    ],
)
def test_the_faults_of_a_csv_file_name_the_file_and_not_a_filter(tmp_path, content, said):
    file = tmp_path / "entries.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        entries_in(str(file))
    assert refused.value.msg.startswith(f"file: {file}: {said}")


def test_a_delimiter_that_is_none_is_named_as_the_variable(tmp_path):
    file = tmp_path / "entries.csv"
    file.write_text("name\nweb01\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        entries_in(str(file), ";;")
    assert refused.value.msg.startswith("delimiter: must be one character")


def test_what_is_written_to_a_json_file_is_read_from_it(tmp_path):
    file = tmp_path / "entries.json"
    write_entries(str(file), ENTRIES, ",")
    assert entries_in(str(file)) == ENTRIES
    assert file.read_text("utf-8").endswith("]\n")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "said"),
    [("entries.txt", "must end in .csv or .json"), ("entries.csv", "exists and is not empty")],
)
def test_a_file_of_another_kind_or_with_content_is_not_overwritten(tmp_path, name, said):
    file = tmp_path / name
    file.write_text("filled in", encoding="utf-8")
    with pytest.raises(InvalidInput, match=said):
        write_entries(str(file), ENTRIES, ",")
    assert file.read_text(encoding="utf-8") == "filled in"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Expecting value"),
        (b"\xff", "can't decode byte 0xff"),
        (b"[" * 100_000, "it is nested deeper than 64 levels"),
        (b"[" * 70 + b"]" * 70, "it is nested deeper than 64 levels"),
        (b'[{"name": "a", "name": "b"}]', "it contains the same key twice in one object"),
        (b'[{"asset": {"id": NaN}}]', "it contains NaN"),
        (b'[{"asset": {"id": ' + b"9" * 5000 + b"}}]", "an integer of more than 4300 digits"),
    ],
)
def test_what_is_not_strict_json_is_refused(tmp_path, content, said):
    file = tmp_path / "entries.json"
    file.write_bytes(content)
    with pytest.raises(InvalidInput) as refused:
        entries_in(str(file))
    assert refused.value.msg.startswith(f"file: {file} is not JSON (")
    assert said in refused.value.msg
