# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option `ledger` as users write it, inside the Ansible worker and around a module in its own
process.
"""

from __future__ import annotations

import json
import os
import stat

import pytest

CREATE = "infrastructure.services.compute_virtual_machine"
VARIABLE = "INFRASTRUCTURE_SERVICES_LEDGER"
SECRET = "hunter2"
UNREACHABLE = (
    f"postgresql://me:{SECRET}%21@127.0.0.1:1/db",
    f"postgresql://127.0.0.1:1/db?password={SECRET}%21",
)


def create(name: str, **options) -> dict:
    return {"name": name, CREATE: {"name": "web01", **options}, "ignore_errors": True}


def play(ansible, *tasks: dict, verbosity: str = "-v", **environment: str):
    """Run tasks in one play."""
    text = json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}])
    return ansible.playbook(f"{text}\n", verbosity, **environment)


def test_the_ledger_of_the_environment_is_used_unless_the_option_is_empty(ansible, emulator):
    info = {
        "name": "info",
        "infrastructure.services.ledger_info": {"ledger": None, "base_url": None},
    }
    run = play(
        ansible,
        create("first"),
        create("again"),
        create("null", ledger=None),
        create("none", ledger=""),
        info,
        **{VARIABLE: "ledger.db"},
    ).ok()
    changed = {name: run.result(name)["changed"] for name in ("first", "again", "null", "none")}
    assert changed == {"first": True, "again": False, "null": False, "none": True}
    assert len(emulator.conversation()) == 2
    assert [entry["name"] for entry in run.result("info")["entries"]] == ["web01"]


def test_the_files_are_private_to_their_owner_and_hold_no_token(ansible):
    ansible.adhoc(CREATE, "name=web01 ledger=ledger.db access_token=token-of-this-test").ok()
    files = list(ansible.directory.glob("ledger.db*"))
    assert {file.name for file in files} >= {"ledger.db", "ledger.db.lock"}
    for file in files:
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        assert b"token-of-this-test" not in file.read_bytes()
    assert any(b"web01" in file.read_bytes() for file in files)


@pytest.mark.parametrize(("option", "environment"), [UNREACHABLE, UNREACHABLE[::-1]])
def test_the_password_of_a_ledger_is_not_shown(ansible, emulator, option, environment):
    run = play(
        ansible,
        create("option", ledger=option),
        create("environment"),
        verbosity="-vvvv",
        **{VARIABLE: environment},
    )
    for name in ("option", "environment"):
        assert "ledger: postgresql://127.0.0.1:1/db cannot be reached" in run.result(name)["msg"]
    assert (SECRET in run.output, emulator.conversation()) == (False, [])
