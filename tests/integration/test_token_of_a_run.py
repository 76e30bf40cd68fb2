"""The token that the workers of one run share: how often it is requested, and that no trace of it
remains.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.wire import Sent, answer, running

VM = "infrastructure.services.compute_virtual_machine"
SECRET = "s3cret-of-the-client"
HOSTS = 16


class StrictProvider:
    """A service whose provider keeps one valid token per client: a new one revokes the previous
    one.
    """

    def __init__(self) -> None:
        self.lock, self.granted, self.answers = threading.Lock(), [], []
        self.is_revoked = False
        self.reached, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def choose(self, sent: Sent) -> bytes:
        """Answer a request."""
        if sent.case == "token":
            with self.lock:
                self.granted.append(f"granted-token-{len(self.granted)}-{time.time_ns()}")
            return answer(200, {"access_token": self.granted[-1], "expires_in": 3600})
        self.reached.set()
        self.may_answer.wait(30)
        name = json.loads(sent.body)["name"]
        status = self.status_for(name, dict(sent.headers)["Authorization"].partition(" ")[2])
        time.sleep(len(name) % 5 / 50)
        return answer(status, {"id": f"id-{name}", "name": name} if status == 201 else None)

    def status_for(self, name: str, token: str) -> int:
        """Revoke the token when the second task starts; from then on only the newest one is valid."""
        with self.lock:
            if name.startswith("second") and not self.is_revoked:
                self.is_revoked, self.granted[-1] = True, "revoked"
            self.answers.append(201 if token == self.granted[-1] else 401)
            return self.answers[-1]


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    strict = StrictProvider()
    with running(strict.choose) as service:
        strict.url = service.url
        yield strict


@pytest.fixture
def identity(provider) -> dict:
    """The environment of a run that gets its token from the provider."""
    return {
        "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None,
        "INFRASTRUCTURE_SERVICES_BASE_URL": provider.url,
        "INFRASTRUCTURE_SERVICES_AUTH_URL": f"{provider.url}/token",
        "INFRASTRUCTURE_SERVICES_CLIENT_ID": "web",
        "INFRASTRUCTURE_SERVICES_CLIENT_SECRET": SECRET,
    }


def on_hosts(directory: Path, hosts: int, *tasks: str) -> tuple[str, str]:
    """Return a playbook that creates a machine in each task on each host, and its inventory."""
    inventory = directory / "hosts.ini"
    here = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
    inventory.write_text(f"[all]\nweb[001:{hosts:03}] {here}\n", encoding="utf-8")
    names = [
        f'    - {VM}:\n        name: "{task}-{{{{ inventory_hostname }}}}"\n' for task in tasks
    ]
    return "- hosts: all\n  gather_facts: false\n  tasks:\n" + "".join(names), str(inventory)


def test_a_revoked_token_costs_one_token_request_and_fails_no_task(
    ansible, provider, identity, tmp_path
):
    text, inventory = on_hosts(tmp_path, HOSTS, "first", "second")
    ansible.playbook(text, "-i", inventory, "--forks", str(HOSTS), **identity).ok()
    assert len(provider.granted) == 2
    assert provider.answers.count(201) == 2 * HOSTS
    assert provider.answers.count(401) <= HOSTS


def everything(directory: Path) -> bytes:
    """The contents of all files below a directory."""
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory for temporary files; ansible-core 2.21 makes a socket there, whose path must not
    be long.
    """
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def test_a_killed_run_leaves_neither_token_nor_secret_on_disk(
    ansible, provider, identity, tmp_path, short_path
):
    text, inventory = on_hosts(tmp_path, 2, "first")
    provider.may_answer.clear()
    identity["TMPDIR"] = str(short_path)
    try:
        with ansible.interrupted(text, "-i", inventory, **identity) as run:
            assert provider.reached.wait(60)
            run.process.kill()  # so that nothing is tidied up
            run.process.wait(60)
            left = everything(tmp_path) + everything(short_path)
    finally:
        provider.may_answer.set()
    assert len(provider.granted) == 1
    assert provider.granted[0].encode() not in left
    assert SECRET.encode() not in left
