# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed artifact, the emulator inside it, and Ansible's commands, as fixtures.

Environment variables choose what is tested, so that the same tests run on every ansible-core:

- TEST_ANSIBLE_BIN: directory of `ansible-playbook` and its like (default: beside the running Python);
- TEST_COLLECTIONS: a collections path with the artifact installed (default: built and installed here);
- TEST_TARGET_PYTHON: the Python that runs modules (default: the running Python).

What uses the fixture `ansible` runs twice: inside the Ansible worker, and as a module of its own process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests
import yaml

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("TEST_ANSIBLE_BIN") or Path(sys.executable).parent)
TARGET_PYTHON = os.environ.get("TEST_TARGET_PYTHON") or sys.executable
TOKEN = "integration-token"
CONNECTIONS = {"worker": "local", "module": "process"}


@dataclass
class Service:
    """The emulator, seen from its control endpoints."""

    url: str

    def reset(self) -> None:
        """Forget assets, conversation, faults and settings."""
        self._control("POST", "reset")

    def conversation(self) -> list[dict]:
        """What was received since the reset: method, path, headers, body, status, ..."""
        return self._control("GET", "requests").json()

    def bodies(self) -> list[dict]:
        """The JSON bodies of the conversation."""
        return [json.loads(request["body"]) for request in self.conversation()]

    def header(self, name: str) -> list[str | None]:
        """What each request of the conversation said in that header."""
        return [{key.lower(): value for key, value in request["headers"]}.get(name.lower())
                for request in self.conversation()]

    def fault(self, **fault) -> None:
        """Let the next requests go wrong; see extensions/emulator/README.md."""
        self._control("POST", "faults", fault)

    def settings(self, **settings) -> None:
        """Change how the emulator reads what the interface leaves open."""
        self._control("PUT", "settings", settings)

    def seed(self, asset_id: str, **asset) -> None:
        """Store an asset."""
        self._control("PUT", f"assets/{asset_id}", asset)

    def _control(self, method: str, path: str, body: object = None) -> requests.Response:
        answer = requests.request(method, f"{self.url}/_emulator/{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer


@dataclass
class Run:
    """What one run of an Ansible command gave."""

    rc: int
    output: str
    results: list[dict] = field(default_factory=list)

    def result(self, task: str) -> dict:
        """The result of the only task of that name, loops as a whole."""
        (found,) = [line["result"] for line in self.results if line["task"] == task and line["kind"] != "item"]
        return found

    def items(self, task: str) -> list[dict]:
        """The results of the items of a loop."""
        return [line["result"] for line in self.results if line["task"] == task and line["kind"] == "item"]

    def ok(self) -> Run:
        """Insist on success."""
        assert self.rc == 0, self.output
        assert "Traceback" not in self.output
        return self


@dataclass
class Ansible:
    """Ansible's commands in an environment of their own."""

    directory: Path
    collections: Path
    base_url: str
    connection: str

    def environment(self, **more: str | None) -> dict[str, str]:
        """The environment of a command; None removes a variable."""
        kept = {name: value for name, value in os.environ.items()
                if name in {"PATH", "HOME", "TMPDIR", "LANG"} or name.startswith("COVERAGE_")}
        ours = {
            "ANSIBLE_CALLBACKS_ENABLED": "recorder",
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/integration/callback"),
            "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "tests/integration/connection"),
            "ANSIBLE_CONFIG": str(self.directory / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.directory / "home"),
            "ANSIBLE_INVENTORY": str(self.directory / "inventory.yml"),
            "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_RETRY_FILES_ENABLED": "false",
            "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": TOKEN,
            "INFRASTRUCTURE_SERVICES_BASE_URL": self.base_url,
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "RECORDER_FILE": str(self.directory / "results.jsonl"),
        }
        return {name: value for name, value in (kept | ours | more).items() if value is not None}

    def command(self, name: str, *arguments: str, **environment: str | None) -> Run:
        """Run one of Ansible's commands; keyword arguments are environment variables."""
        (self.directory / "ansible.cfg").touch()
        host = {"ansible_connection": self.connection, "ansible_python_interpreter": TARGET_PYTHON}
        (self.directory / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {"localhost": host}}}))
        recorded = self.directory / "results.jsonl"
        recorded.write_text("")
        done = subprocess.run([str(BIN / name), *arguments], cwd=self.directory, env=self.environment(**environment),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              encoding="utf-8", timeout=300, check=False)
        return Run(done.returncode, done.stdout, [json.loads(line) for line in recorded.read_text().splitlines()])

    def adhoc(self, module: str, arguments: str, *options: str, **environment: str | None) -> Run:
        """Run `ansible localhost -m MODULE -a ARGUMENTS`."""
        return self.command("ansible", "localhost", "-m", module, "-a", arguments, *options, **environment)

    def playbook(self, text: str, *options: str, **environment: str | None) -> Run:
        """Run a playbook given as text, or named by FQCN."""
        name = text
        if "\n" in text:
            name = str(self.directory / "playbook.yml")
            Path(name).write_text(text, encoding="utf-8")
        return self.command("ansible-playbook", name, *options, **environment)

    def tasks(self, text: str, *options: str, **environment: str | None) -> Run:
        """Run tasks given as text in a play on localhost."""
        play = {"hosts": "localhost", "gather_facts": False}
        head = yaml.safe_dump([play]) + "  tasks:\n"
        lines = text.strip("\n").splitlines()
        return self.playbook(head + "".join(f"    {line}\n" for line in lines), *options, **environment)


def build_and_install(directory: Path) -> Path:
    """Build the artifact from what git knows or would add, install it, give the collections path."""
    home = {**os.environ, "ANSIBLE_HOME": str(directory / "home")}
    galaxy = [str(BIN / "ansible-galaxy"), "collection"]
    subprocess.run([str(ROOT / "tests/tools/copy"), str(directory / "source")], cwd=ROOT, check=True)
    subprocess.run([*galaxy, "build", "--output-path", str(directory), str(directory / "source")], env=home, check=True)
    (artifact,) = directory.glob("*.tar.gz")
    subprocess.run([*galaxy, "install", "--no-deps", "--offline", "--collections-path",
                    str(directory / "collections"), str(artifact)], env=home, check=True)
    return directory / "collections"


@pytest.fixture(scope="session")
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collections path that holds the installed artifact."""
    given = os.environ.get("TEST_COLLECTIONS")
    return Path(given).resolve() if given else build_and_install(tmp_path_factory.mktemp("artifact"))


@pytest.fixture(scope="session")
def installed(collections: Path) -> Path:
    """The root of the installed collection."""
    return collections / "ansible_collections/infrastructure/services"


@pytest.fixture(scope="session")
def running_service(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The emulator of the installed collection, as a process of its own."""
    ready = tmp_path_factory.mktemp("emulator") / "url"
    process = subprocess.Popen([sys.executable, "-m", "emulator", "--port", "0", "--ready-file", str(ready)],
                               env={**os.environ, "PYTHONPATH": str(installed / "extensions")})
    try:
        deadline = time.monotonic() + 20
        while not ready.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        yield Service(ready.read_text().strip())
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def service(running_service: Service) -> Service:
    """The emulator as it is after its start."""
    running_service.reset()
    return running_service


@pytest.fixture(scope="session", params=CONNECTIONS)
def ansible_in(collections: Path, running_service: Service, request) -> Callable[[Path], Ansible]:
    """Ansible's commands in a directory of the caller's choice."""
    return lambda directory: Ansible(directory, collections, running_service.url, CONNECTIONS[request.param])


@pytest.fixture
def ansible(ansible_in: Callable[[Path], Ansible], service: Service, tmp_path: Path) -> Ansible:
    """Ansible's commands, with the service (fresh) and a token in their environment."""
    return ansible_in(tmp_path)


@pytest.fixture
def ansible_once(collections: Path, service: Service, tmp_path: Path) -> Ansible:
    """The same, for what needs one run only."""
    return Ansible(tmp_path, collections, service.url, CONNECTIONS["worker"])
