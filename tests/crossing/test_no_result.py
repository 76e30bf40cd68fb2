# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message about a module that gave no result holds no credential."""

from __future__ import annotations

import json

import pytest
from support.running import Ansible
from support.wire import answer, running

CREATE = "infrastructure.services.compute_virtual_machine"
PASSWORD, TOKEN = "password-in-the-url", "Connection"  # the second is a word in the error of the connection
FORMS = {"one": (CREATE, {"name": "vm"}), "list": (f"{CREATE}s", {"virtual_machines": [{"name": "vm"}]})}


@pytest.mark.parametrize("form", FORMS)
def test_no_credential_is_in_the_message(collections, tmp_path, form):
    module, given = FORMS[form]
    with running(lambda sent: answer(201, {"name": "vm"})) as service:
        url = service.url.replace("://", f"://me:{PASSWORD}@")
        task = {"name": "Create", module: {**given, "base_url": url, "access_token": TOKEN}, "ignore_unreachable": True,
                "vars": {"ansible_connection": "away", "ansible_away": "late"}}
        ansible = Ansible(tmp_path, collections, service.url, "local")
        run = ansible.playbook(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]) + "\n",
                               ANSIBLE_PIPELINING="true")
    result = run.result("Create")
    assert (result["outcome"], result["unreachable"]) == ("unknown", True)
    assert "reset by peer" in result["msg"]
    assert PASSWORD not in run.output + json.dumps(result)
    assert TOKEN not in result["msg"]
