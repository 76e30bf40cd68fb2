# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The token that the workers of one run share: how often it is requested, and that no trace of it
remains.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

BIN = Path(os.environ.get("TEST_ANSIBLE_BIN") or Path(sys.executable).parent)
VM = "infrastructure.services.compute_virtual_machine"
SECRET = "s3cret-of-the-client"


class StrictProvider(ThreadingHTTPServer):
    """A service whose provider keeps one valid token per client: a new one revokes the previous
    one.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock, self.granted, self.answers = threading.Lock(), [], []
        self.is_revoked = False
        self.reached, self.may_answer = threading.Event(), threading.Event()
        self.may_answer.set()

    def grant(self) -> str:
        with self.lock:
            self.granted.append(f"granted-token-{len(self.granted)}-{time.time_ns()}")
            return self.granted[-1]

    def status_for(self, name: str, token: str) -> int:
        """Revoke the token when the second task starts; from then on only the newest one is valid."""
        with self.lock:
            if name.startswith("second") and not self.is_revoked:
                self.is_revoked, self.granted[-1] = True, "revoked"
            self.answers.append(201 if token == self.granted[-1] else 401)
            return self.answers[-1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/token":
            self.answer(
                200,
                {"access_token": self.server.grant(), "token_type": "Bearer", "expires_in": 3600},
            )
            return
        self.server.reached.set()
        self.server.may_answer.wait(30)
        name = json.loads(body)["name"]
        status = self.server.status_for(name, self.headers["Authorization"].partition(" ")[2])
        time.sleep(len(name) % 5 / 50)
        self.answer(
            status, {"id": f"id-{name}", "name": name, "attributes": {}} if status == 201 else None
        )

    def answer(self, status: int, value: object) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments) -> None:
        """Log nothing."""


@pytest.fixture
def provider():
    with StrictProvider() as running:
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        yield running
        running.shutdown()


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


@pytest.mark.parametrize(
    "hosts",
    [
        20,
        *(pytest.param(50, marks=pytest.mark.stress, id=f"50-{number}") for number in range(10)),
    ],
)
def test_a_revoked_token_costs_one_token_request_and_fails_no_task(
    ansible_once, provider, identity, tmp_path, hosts
):
    text, inventory = on_hosts(tmp_path, hosts, "first", "second")
    ansible_once.playbook(text, "-i", inventory, "--forks", str(hosts), **identity).ok()
    assert len(provider.granted) == 2
    assert provider.answers.count(201) == 2 * hosts
    assert provider.answers.count(401) <= hosts


def test_no_task_fails_when_the_run_directory_is_gone(ansible_once, provider, identity, tmp_path):
    text, inventory = on_hosts(tmp_path, 3, "first")
    local = tmp_path / "local"
    gone = f"    - ansible.builtin.file: {{path: {local}, state: absent}}\n      run_once: true\n"
    before, after = text.split("  tasks:\n")
    identity["ANSIBLE_LOCAL_TEMP"] = str(local)
    run = ansible_once.playbook(f"{before}  tasks:\n{gone}{after}", "-i", inventory, **identity)
    assert provider.answers == [201] * 3, run.output
    assert len(provider.granted) == 1


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_killed_run_leaves_neither_token_nor_secret_on_disk(
    ansible_once, provider, identity, tmp_path, short_path, number
):
    text, inventory = on_hosts(tmp_path, 2, "first")
    (tmp_path / "playbook.yml").write_text(text, encoding="utf-8")
    (tmp_path / "ansible.cfg").touch()
    provider.may_answer.clear()
    process = subprocess.Popen(
        [str(BIN / "ansible-playbook"), "playbook.yml", "-i", inventory],
        cwd=tmp_path,
        start_new_session=True,
        env=ansible_once.environment(**identity, TMPDIR=str(short_path)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert provider.reached.wait(60)
        os.kill(process.pid, number)
        process.wait(60)
        left = everything(tmp_path) + everything(short_path)
    finally:
        provider.may_answer.set()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert len(provider.granted) == 1
    assert provider.granted[0].encode() not in left
    assert SECRET.encode() not in left
