# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the option `ledger` to an open ledger. The behaviour of an open ledger is tested in
tests/ledger.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    InvalidInput,
    MissingLibrary,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.location import (
    open_ledger,
    resolved,
)

ROOT = Path(__file__).resolve().parents[5]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("ledger.db", "/play/ledger.db"),
        ("../a/./ledger.db", "/a/ledger.db"),
        ("/var/ledger.db", "/var/ledger.db"),
        ("~/ledger.db", "/houses/mine/ledger.db"),
        ("postgresql://host/db", "postgresql://host/db"),
    ],
)
def test_a_relative_path_is_below_the_directory(monkeypatch, location, path):
    monkeypatch.setenv("HOME", "/houses/mine")
    assert resolved(location, "/play", from_environment=False) == path


@pytest.mark.parametrize(
    ("playbook_dir", "from_environment"),
    [("/play", True), ("/c/ansible_collections/infrastructure/services/playbooks", False)],
)
def test_from_the_environment_or_a_collection_s_playbook_it_is_below_the_working_directory(
    monkeypatch, tmp_path, playbook_dir, from_environment
):
    monkeypatch.chdir(tmp_path)
    assert resolved("ledger.db", playbook_dir, from_environment) == f"{tmp_path}/ledger.db"
    assert resolved("/var/ledger.db", playbook_dir, from_environment) == "/var/ledger.db"


def test_nothing_is_stored_in_an_installed_collection(tmp_path):
    inside = tmp_path / "ansible_collections/a/b"
    inside.mkdir(parents=True)
    (tmp_path / "link").symlink_to(inside)
    for path in (inside / "ledger.db", tmp_path / "link/ledger.db"):
        with pytest.raises(
            InvalidInput, match=r"^ledger: .*inside an installed collection.*absolute path"
        ):
            resolved(str(path), "/play", from_environment=False)


@pytest.mark.parametrize(
    "location",
    [
        "http://host/db",
        "sqlite:///ledger.db",
        "sqlite://",
        "://",
        "postgresql:/host/db",
        " POSTGRESQL://host/db",
        "host=db.example password=hunter2",
        "dbname = ledger",
        "password='hunter2' host=x",
    ],
)
def test_other_schemes_are_refused_and_not_quoted(location):
    with pytest.raises(InvalidInput, match=r"^ledger: it must be a path or a postgresql:// URL$"):
        resolved(location, "/play", from_environment=False)


@pytest.mark.parametrize("location", ["", " ", "a\0b"])
def test_a_value_that_is_not_a_path_is_refused(location):
    with pytest.raises(InvalidInput, match="it is empty or contains a NUL character"):
        resolved(location, "/play", from_environment=False)


@pytest.mark.parametrize(
    ("location", "playbook_dir"),
    [(os.fsdecode(b"led\xffger.db"), "/play"), ("ledger.db", os.fsdecode(b"/pl\xffay"))],
)
def test_a_path_that_is_not_utf_8_is_refused_in_a_message_that_is(location, playbook_dir):
    with pytest.raises(InvalidInput, match=r"\\udcff.* is not UTF-8") as error:
        resolved(location, playbook_dir, from_environment=False)
    assert error.value.msg.encode()


@pytest.mark.parametrize("url", ["postgresql://host/db", "postgres://host/db"])
def test_a_missing_library_is_named(monkeypatch, url):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingLibrary, match="psycopg"):
        open_ledger(url)


def test_psycopg_is_imported_for_postgresql_only(tmp_path):
    code = """if True:
        import sys, conftest
        from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import location
        location.open_ledger(sys.argv[1]).close()
        sys.exit("psycopg" in sys.modules)"""
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "ledger.db"], cwd=ROOT / "tests", check=True
    )


def test_a_ledger_that_has_to_exist_is_not_created(tmp_path: Path):
    with pytest.raises(
        InvalidInput, match=r"^ledger: there is none at .*, and ledger_create is false"
    ):
        open_ledger(str(tmp_path / "ledger.db"), required_by="ledger_create")
    assert [*tmp_path.iterdir()] == []


def test_a_path_that_leads_round_in_a_circle_is_refused(tmp_path: Path):
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(InvalidInput, match=r"^ledger: Too many levels of symbolic links$"):
        open_ledger(str(tmp_path / "round"))


def test_the_files_are_private_to_their_owner(tmp_path: Path):
    before = os.umask(0)
    try:
        ledger = open_ledger(str(tmp_path / "ledger.db"))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    ledger.close()
    assert modes == dict.fromkeys(("ledger.db", "ledger.db.lock"), 0o600)


def test_a_ledger_that_a_group_shares_stays_shared(tmp_path: Path):
    path = tmp_path / "ledger.db"
    path.touch()
    path.chmod(0o660)
    before = os.umask(0o007)
    try:
        open_ledger(str(path)).close()
    finally:
        os.umask(before)
    assert {entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()} == {0o660}
