# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A creation is sent once over ssh, however often the connection is lost and may be made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from support.running import TARGET_PYTHON, Ansible
from support.wire import answer, running

VM, ROLE = "infrastructure.services.compute_virtual_machine", "infrastructure.services.cassandra_application_role"
# Runs a command on this machine. Other commands than the module find the connection lost each first time, and the
# module's own loses it at the end; `mux` is what ssh says when it goes on without a master connection.
SSH = f"""#!/bin/sh
for command; do :; done
case "$command" in
*{TARGET_PYTHON}*)
    /bin/sh -c "$command"
    test "{{name}}" != mux || echo "mux_client_hello_exchange: write packet: Broken pipe" >&2
    ;;
*)
    if rmdir "{{mark}}" 2> /dev/null; then exec /bin/sh -c "$command"; fi
    mkdir "{{mark}}"
    ;;
esac
echo "Connection reset by peer" >&2
exit 255
"""


class Row(NamedTuple):
    """What one play asks for, and how many requests then arrive from each of its hosts."""

    hosts: tuple[str, ...]
    module: str
    options: dict
    requests: int
    keywords: dict


LEDGER = "{{ playbook_dir ~ '/ledger.db' if inventory_hostname == 'ledger' else '' }}"
ROWS = [
    Row(("one", "ledger", "mux"), VM, {"name": "vm{{ item }}", "ledger": LEDGER}, 2, {"loop": [1, 2]}),
    Row(("list",), f"{VM}s", {"virtual_machines": [{"name": "vm"}]}, 1, {}),
    Row(("update",), ROLE, {"id": "role", "name": "role"}, 2, {}),
]
REQUESTS = {host: row.requests for row in ROWS for host in row.hosts}


def executable(directory: Path, name: str) -> str:
    """Write the ssh of a host."""
    script = directory / f"{name}.ssh"
    script.write_text(SSH.format(name=name, mark=directory / f"{name}.lost"), encoding="utf-8")
    script.chmod(0o755)
    return str(script)


@pytest.fixture(scope="module")
def ran(collections, tmp_path_factory):
    """Run each row; return the run and the service."""
    directory = tmp_path_factory.mktemp("ssh")
    hosts = {name: {"ansible_ssh_executable": executable(directory, name)} for name in REQUESTS}
    with running(lambda sent: answer(201, {"id": "id", **json.loads(sent.body)})) as service:
        where = {"base_url": f"{service.url}/{{{{ inventory_hostname }}}}"}
        plays = [{"hosts": ",".join(row.hosts), "gather_facts": False, "ignore_unreachable": True,
                  "tasks": [{"name": "Send", row.module: {**row.options, **where}, **row.keywords}]} for row in ROWS]
        run = Ansible(directory, collections, service.url, "ssh", {"all": {"hosts": hosts}}).playbook(
            json.dumps(plays) + "\n", ANSIBLE_PIPELINING="true", ANSIBLE_SSH_RETRIES="1")
    return run, service


@pytest.mark.parametrize("name", REQUESTS)
def test_the_connection_repeats_what_prepares_the_module_and_an_update_but_no_creation(ran, name):
    assert len(ran[1].sent_by(name)) == REQUESTS[name], ran[0].output


@pytest.mark.parametrize("name", REQUESTS)
def test_a_lost_connection_leaves_the_outcome_unknown(ran, name):
    results = [line["result"] for line in ran[0].results if line["host"] == name]
    assert {(result["outcome"], result["unreachable"]) for result in results if "results" not in result} == {
        ("unknown", True)}, results


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
