"""The results of running the table: task results, requests, and what each ledger holds afterwards."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret
from crossing.playbook import playbook
from crossing.table import FATES, cases, ledgers
from ledger.entries import execute
from support.databases import schema_in
from support.ledgers import create
from support.running import Ansible, Run
from support.wire import Last, Sent, Wire, running

ENTRIES = "SELECT name, state FROM infrastructure_services_entry"
PASSWORD, VAULTED = "of the vault", "secret-in-the-vault"
PLACES = ("ledger", "unreached")  # of each kind of ledger, for one service each


class Played(NamedTuple):
    """The results of one play, its directory, and the service that it met."""

    run: Run
    service: Wire
    directory: Path


class Crossed(NamedTuple):
    """The results of one run of all cases of a path."""

    run: Run
    service: Wire
    entries: dict[str, dict[str, str]]  # by ledger: the state by name

    def results(self, ledger: str, task: str) -> list[dict]:
        """Return the result of a task on a host, or those of its items."""
        found = [
            line for line in self.run.results if line["task"] == task and line["host"] == ledger
        ]
        return [line["result"] for line in found if line["kind"] == "item" or len(found) == 1]

    def sent(self, ledger: str, machine: int, form: str) -> list[Sent]:
        """Return the requests of a task."""
        return [
            sent
            for sent in self.service.sent_by(ledger)
            if machine_of(sent) == machine and ("X-Form", form) in sent.headers
        ]


def machine_of(sent: Sent) -> int:
    """Return the number of the machine that a request creates."""
    return int(json.loads(sent.body)["name"].split("-")[1])


def entries_of(location: str) -> dict[str, str]:
    """Return the entries of a ledger, read without the collection."""
    return dict(execute(location, ENTRIES))


def located(kinds: list[str], directory: Path, postgres_server: str) -> dict[str, dict[str, str]]:
    """Return the variables of the hosts: by the kind of ledger, places of ledgers."""
    places = {
        "none": lambda _name: "none",
        "sqlite": lambda name: str(directory / f"{name}.db"),
        "postgresql": lambda _name: schema_in(postgres_server),
    }
    return {kind: {name: places[kind](name) for name in PLACES} for kind in kinds}


def create_all(kinds: dict[str, dict[str, str]], service: str, nobody: str) -> None:
    """Create all ledgers, each for the URL that its tasks have."""
    for kind, kept in kinds.items():
        for place, url in zip(PLACES, (service, nobody)) if kind != "none" else ():
            create(kept[place], f"{url}/{kind}")


def recorded(kept: dict[str, str]) -> dict[str, str]:
    """Return the entries of the ledgers of one kind."""
    found: dict[str, str] = {}
    for location in kept.values():
        found |= entries_of(location) if location != "none" else {}
    return found


@pytest.fixture(scope="session")
def nobody() -> Iterator[str]:
    """The URL of a port where nothing listens, reserved for the duration."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="module")
def played(collections: Path, tmp_path_factory) -> Callable[..., Played]:
    """Run tasks, given as YAML or data, in one play that goes on when one fails."""

    def played(
        tasks: str | list,
        choose: Callable[[Sent], bytes],
        hosts: dict[str, dict] | None = None,
        of: str = "all",
        environment: dict[str, str | None] | None = None,
        prepare: Callable[[str, Path], object] = lambda service, directory: None,
        has_tracebacks: bool = False,
        **variables: object,
    ) -> Played:
        """`of`: the hosts of the play; `prepare`: gets the URL of the service and the directory;
        `has_tracebacks`: of modules that raise, which old cores print; `variables`: of the play,
        beside `service` and `vaulted`.
        """
        directory = tmp_path_factory.mktemp("played")
        password = directory / "password"
        password.write_text(PASSWORD)
        vault = VaultLib([("default", VaultSecret(PASSWORD.encode()))])
        vaulted = f"!vault {json.dumps(vault.encrypt(VAULTED).decode())}"
        with running(choose) as service:
            prepare(service.url, directory)
            play = {"hosts": of, "gather_facts": False}
            play |= dict.fromkeys(("ignore_errors", "ignore_unreachable"), True)
            play["vars"] = {"service": service.url, "vaulted": "@VAULT@", **variables}
            text = tasks if isinstance(tasks, str) else f"{json.dumps(tasks)}\n"
            indented = "".join(f"   {line}\n" for line in text.splitlines())
            whole = f"{yaml.safe_dump([play])}  tasks:\n{indented}"
            whole = whole.replace("'@VAULT@'", vaulted).replace('"@VAULT@"', vaulted)
            inventory = {"all": {"hosts": hosts or {"localhost": {}}}}
            run = Ansible(directory, collections, service.url, "local", inventory).playbook(
                whole,
                "--vault-password-file",
                str(password),
                ANSIBLE_PIPELINING="true",
                **(environment or {}),
            )
        assert has_tracebacks or "Traceback" not in run.output
        return Played(run, service, directory)

    return played


@pytest.fixture(scope="session")
def crossed(
    collections: Path, postgres_server, nobody: str, tmp_path_factory
) -> Iterator[Callable[[str], Crossed]]:
    """Run all cases of a path, once."""

    @cache
    def run(path: str) -> Crossed:
        directory = tmp_path_factory.mktemp(path)
        fates = {case.machine: FATES[case.fate].answer for case in cases(path)}

        def choose(sent: Sent) -> bytes:
            told = fates[machine_of(sent)]
            return told(json.loads(sent.body)["name"]) if told else Last()

        kinds = located(ledgers(path), directory, postgres_server)
        with running(choose) as service:
            create_all(kinds, service.url, nobody)
            ansible = Ansible(directory, collections, "", "local", {"all": {"hosts": kinds}})
            done = ansible.playbook(
                playbook(path, service.url, nobody),
                "--forks",
                "3",
                ANSIBLE_PIPELINING="true",
                INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
                INFRASTRUCTURE_SERVICES_BASE_URL=None,
            )
        assert "Traceback" not in done.output
        return Crossed(done, service, {kind: recorded(kept) for kind, kept in kinds.items()})

    return run
