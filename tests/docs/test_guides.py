"""README.md and the guides run, each after the others, in one directory with one ledger, as a
reader would try them.

The emulator's address stands in for the addresses in the examples.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator

import pytest
import yaml
from docs.guides import Step, in_order, read
from support.checkout import CHECKOUT
from support.databases import private_server
from support.emulating import Service
from support.running import BIN, Ansible, build_artifact

PAGES = {path.stem: path for path in in_order()}
ADDRESSES = ("https://login.example.com", "https://service.example.com", "http://127.0.0.1:8080")
DATABASE = re.compile(r"postgresql://(\w+)@db\.example\.com/ledger(\??)")
EMULATOR = "ansible-playbook infrastructure.services.emulator"
# What several pages tell newcomers to do first, in the same words but for a directory.
ONCE = ("python -m pip install ", "ansible-galaxy collection install ", f"{EMULATOR} -e ")
# What needs a network or another place, or is for a ledger of its own: other tests and .ci/run run it.
_PLAYBOOK = "ansible-playbook infrastructure.services"
ELSEWHERE = (
    *("git clone ", "cd infrastructure.services", "make ", "molecule test"),
    *("cp -r ~/.ansible/", "gpg --dearmor ", "gpgv "),
    *("ansible-builder ", "ansible-navigator run ", "GNUPGHOME=$(mktemp -d) ansible-galaxy "),
    *("ansible-galaxy collection install infra", "ansible-galaxy collection install --offline "),
    f"{_PLAYBOOK}.in_doubt -e fail=true",
    *(f"{_PLAYBOOK}.move_ledger -e {to}=" for to in ("to", "to_base_url")),
)
LEDGER = "INFRASTRUCTURE_SERVICES_LEDGER"
FIRST = ("README", "home")  # they set the ledger, and all other pages rely on it
QUICK = ("README",)  # `make guides` and .ci/run follow the others


class World:
    """The directory in which all pages are followed."""

    def __init__(self, ansible: Ansible, service: Service) -> None:
        self.ansible, self.service = ansible, service
        self.environment: dict[str, str | None] = {}  # what the page exports
        self.database = ""  # the query of the URL of a PostgreSQL server, while one runs
        self._done: set[str] = set()  # of the commands that run once

    def follow(self, name: str) -> None:
        """Do what a page says, from top to bottom, in a new terminal."""
        page, ledger = read(PAGES[name]), str(self.ansible.directory / "fleet.db")
        self.environment = {} if name in FIRST else {LEDGER: ledger}
        for file, text in page.files.items():
            path = self.ansible.directory / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(self.with_addresses(text), encoding="utf-8")
        for step in page.steps:
            whole = step.text + "".join(
                text for file, text in page.files.items() if file in step.text
            )
            token = {"INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None} if "auth_url" in whole else {}
            self.run(step._replace(text=self.with_addresses(step.text)), self.environment | token)

    def run(self, step: Step, environment: dict) -> None:
        """Run a step; assert its success, and the output that the page shows."""
        if step.kind == "tasks":
            self.ansible.tasks(step.text, **environment).ok()
        elif step.text.startswith("export "):
            name, _equals, value = step.text.removeprefix("export ").partition("=")
            self.environment[name] = value.replace("$PWD", str(self.ansible.directory))
        elif not step.text.startswith(ELSEWHERE) and not self._was_done(step.text):
            line = step.text
            if line.startswith(EMULATOR) and "emulator_state=absent" not in line:
                line += " -e emulator_port=0"  # the port on the page may be in use
            done = self.ansible.command("/bin/bash", "-c", line, **environment).ok()
            assert step.output.rstrip("\n") in done.output

    def _was_done(self, line: str) -> bool:
        """Return whether a command that runs once has run; note that it runs now."""
        line = re.sub(r"\$PWD/\w+", "DIRECTORY", line)
        if not line.startswith(ONCE) or line in self._done:
            return line in self._done
        self._done.add(line)
        return False

    def with_addresses(self, text: str) -> str:
        """The example, pointed at the emulator, and at our PostgreSQL."""
        for address in ADDRESSES:
            text = text.replace(address, self.service.url)
        return DATABASE.sub(
            lambda url: (
                f"'postgresql://{url[1]}@/postgres?{self.database}'"
                if not url[2]
                else f"postgresql://{url[1]}@/postgres?{self.database}&"
            ),
            text,
        )


@pytest.fixture(scope="module")
def world(collections, running_service, tmp_path_factory) -> Iterator[World]:
    """The directory, with the artifact that README.md installs over the collection that is there."""
    directory = tmp_path_factory.mktemp("world")
    build_artifact(CHECKOUT, directory)
    shutil.copytree(collections, directory / "collections")
    ansible = Ansible(directory, directory / "collections", running_service.url, "local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(BIN), prepend=":")
        yield World(ansible, running_service)


SETTINGS = {
    "authenticate": {
        "client_id": "provisioning",
        "client_secret": yaml.safe_load(read(PAGES["authenticate"]).files["group_vars/all.yml"])[
            "infrastructure_client_secret"
        ],
    }
}
# What the service receives, by the operation, or for a creation by the name; other pages say it
# themselves.
RECEIVED = {
    "README": ["web01", "web02", "update_application_role", "app01", "app02"],
    "authenticate": ["token", "token02", "token03", "token05"],
}


@pytest.fixture
def postgresql(world, monkeypatch) -> Iterator[None]:
    """A PostgreSQL server at the address of the examples, with its own commands on PATH."""
    with private_server() as server:
        world.database = server.url.partition("?")[2]
        monkeypatch.setenv("PATH", str(server.commands), prepend=":")
        yield


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.matrix)
        for name in PAGES
        if name != "postgresql"
    ],
)
def test_the_examples_of_a_page_run(world, service, name):
    service.seed("role-1", name="orders")  # the role that the emulator's playbook has
    service.settings(**SETTINGS.get(name, {}))
    world.follow(name)
    received = [
        json.loads(request["body"])["name"]
        if request["method"] == "POST" and request["operation"] != "token"
        else request["operation"]
        for request in service.conversation()
    ]
    if name == "README":  # its last list sends both machines at once
        received[-2:] = sorted(received[-2:])
    assert RECEIVED.get(name) in (None, received)


@pytest.mark.matrix
@pytest.mark.usefixtures("postgresql")
def test_the_guide_to_postgresql_creates_one_machine(world, service):
    world.follow("postgresql")
    assert [body["name"] for body in service.bodies()] == ["db11"]


@pytest.mark.matrix
def test_the_guide_to_updates_holds_when_an_update_replaces_the_role(world, service):
    service.settings(put="replace")
    service.seed("role-1", name="orders", attributes={"login": False})
    world.follow("update_a_role")


def test_no_page_overwrites_the_file_of_another():
    named = [name for path in PAGES.values() for name in read(path).files]
    assert sorted(named) == sorted(set(named))


def test_every_guide_is_listed():
    guides = {path.stem for path in (CHECKOUT / "docs/docsite/rst").glob("*.rst")}
    assert guides == PAGES.keys() - {"README"}
