# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option `ledger` as users write it, inside the Ansible worker and around a module in its own process."""

from __future__ import annotations

import json
import os
import stat

import pytest

CREATE = "infrastructure.services.compute_virtual_machine"
VARIABLE = "INFRASTRUCTURE_SERVICES_LEDGER"
SECRET = "hunter2"
UNREACHABLE = (f"postgresql://me:{SECRET}%21@127.0.0.1:1/db", f"postgresql://127.0.0.1:1/db?password={SECRET}%21")


def test_an_empty_ledger_means_none_whatever_the_environment_says(ansible, emulator):
    for arguments, requests in (("name=web01", 1), ("name=web01", 1), ("name=web01 ledger=", 2)):
        run = ansible.adhoc(CREATE, arguments, **{VARIABLE: "ledger.db"}).ok()
        assert len(emulator.conversation()) == requests
    assert '"changed": true' in run.output


def test_null_means_the_ledger_of_the_environment(ansible, emulator):
    for _run in range(2):
        ansible.adhoc(CREATE, json.dumps({"name": "web01", "ledger": None}), **{VARIABLE: "ledger.db"}).ok()
    assert len(emulator.conversation()) == 1
    of_ledger = {"ledger": None, "base_url": None}
    found = ansible.adhoc("infrastructure.services.ledger_info", json.dumps(of_ledger), **{VARIABLE: "ledger.db"}).ok()
    assert '"name": "web01"' in found.output


def test_the_files_are_private_to_their_owner_and_hold_no_token(ansible):
    ansible.adhoc(CREATE, "name=web01 ledger=ledger.db access_token=token-of-this-test").ok()
    files = list(ansible.directory.glob("ledger.db*"))
    assert {file.name for file in files} >= {"ledger.db", "ledger.db.lock"}
    for file in files:
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        assert b"token-of-this-test" not in file.read_bytes()
    assert any(b"web01" in file.read_bytes() for file in files)


@pytest.mark.parametrize("url", UNREACHABLE)
@pytest.mark.parametrize("how", ["by the option", "by the environment"])
def test_the_password_of_a_ledger_is_not_shown(ansible, emulator, url, how):
    ledger = {"ledger": url} if how == "by the option" else {}
    environment = {} if ledger else {VARIABLE: url}
    run = ansible.adhoc(CREATE, json.dumps({"name": "web01", **ledger}), "-vvvv", **environment)
    assert run.rc != 0
    assert "ledger: postgresql://127.0.0.1:1/db cannot be reached" in run.output
    assert (SECRET in run.output, emulator.conversation()) == (False, [])
