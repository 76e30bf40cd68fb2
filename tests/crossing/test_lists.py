# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plural module, and a service with two spellings: paths and ledgers crossed with fates, in one
run.
"""

from __future__ import annotations

import json
from itertools import product
from typing import NamedTuple

import pytest
from crossing.conftest import entries_of
from crossing.playbook import KEYWORDS, MODULE, inventory
from crossing.table import CPU, LEDGERS, created
from support.databases import schema_in
from support.running import Ansible
from support.wire import Last, answer, running

PATHS = ("worker", "become")
NAMES = ("a", "b", "c")


class Fate(NamedTuple):
    """How the service answers each request, the outcomes of the items with a concurrency of 1, the
    state of entries.
    """

    answer: object
    outcomes: tuple[str, ...]
    outcome: str
    requests: int
    state: str | None = None
    says: str = ""


FATES = {
    "ok": Fate(lambda name: answer(201, created(name)), ("accepted",) * 3, "accepted", 3, "done"),
    "403": Fate(lambda name: answer(403), ("rejected",) * 3, "rejected", 3, says="403"),
    # max_unknown allows no more than one machine in doubt, so the others are not started.
    "lost": Fate(
        lambda name: Last(),
        ("unknown", "not_sent", "not_sent"),
        "unknown",
        1,
        "unknown",
        "max_unknown",
    ),
    "unreachable": Fate(None, ("not_sent",) * 3, "not_sent", 0, says="refused"),
}
CASES = list(product(PATHS, LEDGERS, FATES))
# The ledger compares the spellings before a module starts, so one case becomes another user.
SPELLED = [*(("worker", ledger) for ledger in LEDGERS), ("become", "sqlite")]
REFUSED = Fate(
    None, (), "not_sent", 0, says="delegate_to"
)  # outcomes could only be recorded at the end


def expected(path: str, ledger: str, fate: str) -> Fate:
    return REFUSED if path == "become" and ledger != "none" else FATES[fate]


def of_list(path: str, fate: str) -> dict:
    """Return the task that creates a list."""
    at = "nobody" if fate == "unreachable" else "service"
    machines = [{"name": f"{path}-{fate}-{name}", "attributes": {"cpu": CPU}} for name in NAMES]
    given = {
        "base_url": f"{{{{ {at} }}}}/{path}-{{{{ inventory_hostname }}}}-{fate}",
        "virtual_machines": machines,
        "concurrency": 1,
        "retries": 0,
        "retry_max_delay": 0,
        "ledger": "{{ ledger | default(omit) }}",
    }
    return {"name": f"{path} {fate}", **KEYWORDS[path], f"{MODULE}s": given}


def of_spellings(path: str) -> list[dict]:
    """Return the tasks that create one machine at two spellings of a service's URL, then again at
    the second one.
    """
    given = {"name": f"{path}-spelled", "ledger": "{{ spelled | default(omit) }}"}
    urls = {"first": "{{ service }}", "second": "{{ service | replace('127.0.0.1', 'localhost') }}"}
    hosts = [ledger for where, ledger in SPELLED if where == path]
    return [
        {
            "name": f"{path} {when}",
            **KEYWORDS[path],
            "when": f"inventory_hostname in {hosts}",
            MODULE: {
                **given,
                "base_url": f"{urls.get(when, urls['second'])}/{path}-{{{{ inventory_hostname }}}}",
            },
        }
        for when in ("first", "second", "again")
    ]


@pytest.fixture(scope="module")
def ran(collections, postgres_server, nobody, tmp_path_factory):
    """Run everything; return the run, the service, and the entries of the ledgers."""
    directory = tmp_path_factory.mktemp("lists")

    def choose(sent):
        fate = FATES.get(sent.case.rpartition("-")[2], FATES["ok"])
        return fate.answer(json.loads(sent.body)["name"])

    kinds = ("ledger", "spelled")
    ledgers = {
        "none": {},
        "sqlite": {kind: str(directory / f"{kind}.db") for kind in kinds},
        "postgresql": {kind: schema_in(postgres_server) for kind in kinds},
    }
    with running(choose) as service:
        play = {
            "hosts": "ledgers",
            "gather_facts": False,
            "ignore_errors": True,
            "vars": {"service": service.url, "nobody": nobody},
            "tasks": [
                *(of_list(path, fate) for path, fate in product(PATHS, FATES)),
                *(task for path in PATHS for task in of_spellings(path)),
            ],
        }
        ansible = Ansible(directory, collections, service.url, "local", inventory(ledgers))
        run = ansible.playbook(json.dumps([play]) + "\n", "--forks", "3", ANSIBLE_PIPELINING="true")
    return (
        run,
        service,
        {name: entries_of(kept["ledger"]) for name, kept in ledgers.items() if kept},
    )


def result_of(ran, ledger: str, task: str) -> dict:
    (result,) = [
        line["result"] for line in ran[0].results if (line["task"], line["host"]) == (task, ledger)
    ]
    return result


@pytest.mark.parametrize(("path", "ledger", "fate"), CASES)
def test_a_list_reports_what_happened_to_each(ran, path, ledger, fate):
    want, result = expected(path, ledger, fate), result_of(ran, ledger, f"{path} {fate}")
    assert [item["outcome"] for item in result.get("results", [])] == list(want.outcomes), result
    is_ok = want is FATES["ok"]
    assert (result["outcome"], result["failed"], result["changed"]) == (
        want.outcome,
        not is_ok,
        is_ok,
    )
    assert want.says in " ".join(
        [result.get("msg", ""), *(item.get("msg", "") for item in result.get("results", ()))]
    )
    made = {f"{path}-{fate}-{name}": created(f"{path}-{fate}-{name}") for name in NAMES}
    assert result.get("ansible_facts", {}).get("compute_virtual_machines", {}) == (
        made if is_ok else {}
    )
    assert len(ran[1].sent_by(f"{path}-{ledger}-{fate}")) == want.requests


@pytest.mark.parametrize(("path", "ledger", "fate"), [case for case in CASES if case[1] != "none"])
def test_the_ledger_records_each(ran, path, ledger, fate):
    want, key = expected(path, ledger, fate), f"{path}-{ledger}-{fate}"
    known = {name: state for (where, name), state in ran[2][ledger].items() if where == key}
    assert known == {
        f"{path}-{fate}-{name}": want.state for name in NAMES[: want.requests] if want.state
    }


@pytest.mark.parametrize(("path", "ledger"), SPELLED)
def test_a_second_spelling_of_a_service_raises_a_warning(ran, path, ledger):
    first, second, again = (
        result_of(ran, ledger, f"{path} {when}") for when in ("first", "second", "again")
    )
    outcome = "accepted" if ledger == "none" else "not_sent"
    assert [first["outcome"], second["outcome"], again["outcome"]] == [
        "accepted",
        "accepted",
        outcome,
    ]
    assert len(ran[1].sent_by(f"{path}-{ledger}")) == (3 if ledger == "none" else 2)
    assert not first.get("warnings")
    assert not again.get("warnings")
    told = " ".join(second.get("warnings", []))
    place = f"{ran[1].url}/{path}-{ledger}"
    assert (
        told == ""
        if ledger == "none"
        else f"virtual machine {path}-spelled: the ledger has one" in told
    )
    assert (place in told) is (ledger != "none")


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
