"""Lists that two ansible-runners work on at once: one request for each machine, none when they are
created again.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.running import BIN


def created(service) -> list[str]:
    """Return the names in the requests that the service received."""
    return sorted(json.loads(entry.as_dict()["body"])["name"] for entry in service.api.conversation)


def shard(ansible, directory: Path, names: list[str], ledger: str) -> subprocess.Popen:
    """Start an ansible-runner of its own, as AWX does for each slice of a job."""
    listed = {"fleet_virtual_machines": [{"name": name} for name in names], "fleet_ledger": ledger}
    play = {"hosts": "localhost", "gather_facts": False, "roles": ["infrastructure.services.fleet"]}
    own = ansible.environment(ANSIBLE_INVENTORY=None, ANSIBLE_CALLBACKS_ENABLED=None)
    for name, content in {
        "env/envvars": own,
        "project/site.yml": [{**play, "vars": {**listed, "fleet_concurrency": len(names)}}],
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return subprocess.Popen(
        [BIN / "ansible-runner", "run", directory, "--playbook", "site.yml"],
        env=ansible.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.matrix
def test_shards_of_a_fleet_create_no_machine_twice(ansible, service, postgres, tmp_path):
    """A third of the hosts is in both shards."""
    hosts = [f"web{number:02}" for number in range(24)]
    parts = {"one": hosts[:16], "two": hosts[8:]}
    for _run in range(2):
        running = {
            name: shard(ansible, tmp_path / name, part, postgres) for name, part in parts.items()
        }
        for process in running.values():
            said, _errors = process.communicate(timeout=120)
            assert process.returncode == 0, said
            assert "failed=0" in said
        assert created(service) == hosts
