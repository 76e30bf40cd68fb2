"""A fleet as an inventory: one request per host, none when it is created again, however many share
the work.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import yaml
from support.fleets import play_of_hosts
from support.running import BIN

ATTRIBUTES = {"cpu": 4, "team": "web"}


def inventory(hosts: list[str]) -> str:
    """Return an inventory like the one of the guide "Create a fleet"."""
    variables = {"virtual_machine_attributes": ATTRIBUTES}
    return yaml.safe_dump({"fleet": {"hosts": {host: {} for host in hosts}, "vars": variables}})


def created(service) -> list[str]:
    """Return the names in the requests that the service received."""
    return sorted(json.loads(entry.as_dict()["body"])["name"] for entry in service.api.conversation)


def shard(ansible, directory: Path, hosts: list[str], ledger: str) -> subprocess.Popen:
    """Start an ansible-runner of its own, as AWX does for each slice of a job."""
    for name, text in {
        "inventory/fleet.yml": inventory(hosts),
        "env/envvars": json.dumps(
            ansible.environment(
                INFRASTRUCTURE_SERVICES_LEDGER=ledger,
                ANSIBLE_INVENTORY=None,
                ANSIBLE_CALLBACKS_ENABLED=None,
            )
        ),
        "project/site.yml": play_of_hosts(fleet_concurrency=len(hosts)),
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
    """A third of the hosts is in both shards; one that lost a machine to the other says so."""
    hosts = [f"web{number:02}" for number in range(24)]
    parts = {"one": hosts[:16], "two": hosts[8:]}
    for _run in range(2):
        running = {
            name: shard(ansible_once, tmp_path / name, part, postgres)
            for name, part in parts.items()
        }
        for name, process in running.items():
            said, _errors = process.communicate(timeout=120)
            if process.returncode == 0:
                assert "failed=0" in said
                del parts[name]
            else:
                assert "began to work on it" in said, said
        assert created(service) == hosts
    assert not parts
