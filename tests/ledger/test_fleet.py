# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet as an inventory: one request per host, none when it is created again, however many share
the work.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from support.running import BIN

FLEET = "infrastructure.services.create_fleet"
ATTRIBUTES = {"cpu": 4, "team": "web"}


def inventory(hosts: list[str]) -> str:
    """Return an inventory like the one of the guide "Create a fleet"."""
    variables = {"virtual_machine_attributes": ATTRIBUTES}
    return yaml.safe_dump({"fleet": {"hosts": {host: {} for host in hosts}, "vars": variables}})


def create(ansible, hosts: int, *options: str) -> dict:
    """Create a fleet with fifty forks, and return the result of the list."""
    (ansible.directory / "fleet.yml").write_text(
        inventory([f"web{number:04}" for number in range(hosts)])
    )
    line = [
        "-i",
        "fleet.yml",
        "--forks",
        "50",
        "-e",
        f"ledger={ansible.directory}/ledger.db",
        *options,
    ]
    run = ansible.playbook(FLEET, *line).ok()
    return run.result("infrastructure.services.fleet : Create the virtual machines")


def created(service) -> list[str]:
    """Return the names in the requests that the service received."""
    return sorted(json.loads(entry.as_dict()["body"])["name"] for entry in service.api.conversation)


@pytest.mark.parametrize(
    "hosts",
    [pytest.param(100, marks=pytest.mark.matrix), pytest.param(1000, marks=pytest.mark.stress)],
)
def test_a_fleet_is_created_once_and_grows_by_what_is_missing(ansible_once, service, hosts):
    planned = create(ansible_once, hosts, "--check")
    assert (planned["counts"]["create"], service.api.conversation) == (hosts, [])
    first = create(ansible_once, hosts)
    assert first["counts"]["changed"] == hosts
    assert created(service) == [f"web{number:04}" for number in range(hosts)]
    bodies = [json.loads(entry.as_dict()["body"]) for entry in service.api.conversation]
    assert all(body["attributes"] == ATTRIBUTES for body in bodies)
    again = create(ansible_once, hosts + 2)
    assert again["counts"]["changed"] == 2
    assert len(service.api.conversation) == hosts + 2
    assert again["results"] == first["results"] == [], "the role returns problems only"
    facts, known = (each["ansible_facts"]["compute_virtual_machines"] for each in (again, first))
    assert (len(facts), {name: facts[name]["id"] for name in known}) == (
        hosts + 2,
        {name: asset["id"] for name, asset in known.items()},
    )


def test_a_fleet_needs_a_ledger(ansible_once, service):
    run = ansible_once.playbook(FLEET, "-i", "web01,", "-e", "fleet=all")
    assert run.rc != 0
    assert "Without a ledger a second run would create another fleet" in run.output
    assert service.api.conversation == []


def shard(ansible, directory: Path, hosts: list[str], ledger: str) -> subprocess.Popen:
    """Start an ansible-runner of its own, as AWX does for each slice of a job."""
    for name, text in {
        "inventory/fleet.yml": inventory(hosts),
        "env/cmdline": f"--forks {len(hosts)}",
        "env/envvars": json.dumps(
            ansible.environment(
                INFRASTRUCTURE_SERVICES_LEDGER=ledger,
                ANSIBLE_INVENTORY=None,
                ANSIBLE_CALLBACKS_ENABLED=None,
            )
        ),
        "project/site.yml": f"- import_playbook: {FLEET}\n",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.Popen(
        [BIN / "ansible-runner", "run", directory, "--playbook", "site.yml"],
        env=ansible.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_shards_of_a_fleet_create_no_machine_twice(ansible_once, service, postgres, tmp_path):
    """A third of the hosts is in both shards."""
    hosts = [f"web{number:02}" for number in range(24)]
    running = [
        shard(ansible_once, tmp_path / f"shard{number}", part, postgres)
        for number, part in enumerate((hosts[:16], hosts[8:]))
    ]
    for process in running:
        said, _errors = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert "failed=0" in said
    assert created(service) == hosts
