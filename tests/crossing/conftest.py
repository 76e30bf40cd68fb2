"""The results of running the table: task results, requests, and what each ledger holds afterwards."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from crossing.playbook import inventory, playbook
from crossing.table import FATES, cases
from support.databases import postgres_server, schema_in
from support.fixtures import collections
from support.running import Ansible, Run
from support.wire import Last, Sent, Wire, running

__all__ = ["collections", "postgres_server"]

ENTRIES = "SELECT name, state FROM infrastructure_services_entry"


class Crossed(NamedTuple):
    """The results of one run of all cases of a path."""

    run: Run
    service: Wire
    entries: dict[str, dict[str, str]]  # by ledger: the state by name
    untouched: dict[
        str, bool
    ]  # by ledger: whether a ledger only read in check mode still does not exist

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


def entries_of(location: str) -> dict[str, str] | None:
    """Return the entries of a ledger, read without the collection; None if there is no ledger at
    all.
    """
    if location.startswith("postgresql:"):
        with psycopg.connect(location) as connection:
            if not connection.execute(
                "SELECT 1 FROM pg_tables WHERE schemaname = current_schema()"
            ).fetchone():
                return None
            rows = connection.execute(ENTRIES).fetchall()
    elif not any(Path(location).parent.glob(f"{Path(location).name}*")):
        return None
    else:
        with closing(sqlite3.connect(f"file:{location}?mode=ro", uri=True)) as connection:
            rows = connection.execute(ENTRIES).fetchall()
    return dict(rows)


@pytest.fixture(scope="session")
def nobody() -> Iterator[str]:
    """The URL of a port where nothing listens, reserved for the duration."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


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

        ledgers = {"none": {}}
        ledgers["sqlite"] = {
            name: str(directory / f"{name}.db") for name in ("ledger", "unreached", "untouched")
        }
        ledgers["postgresql"] = {
            name: schema_in(postgres_server) for name in ("ledger", "unreached", "untouched")
        }
        with running(choose) as service:
            ansible = Ansible(directory, collections, "", "local", inventory(ledgers))
            done = ansible.playbook(
                playbook(path, service.url, nobody),
                "--forks",
                "3",
                ANSIBLE_PIPELINING="true",
                INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
                INFRASTRUCTURE_SERVICES_BASE_URL=None,
            )
        found = {
            name: {key: entries_of(location) for key, location in kept.items()}
            for name, kept in ledgers.items()
        }
        entries = {
            name: {**(kept.get("ledger") or {}), **(kept.get("unreached") or {})}
            for name, kept in found.items()
        }
        return Crossed(
            done,
            service,
            entries,
            {name: kept.get("untouched") is None for name, kept in found.items()},
        )

    return run
