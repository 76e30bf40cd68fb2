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
        "base_url": f"{{{{ {at} }}}}/{{{{ inventory_hostname }}}}",
        "virtual_machines": machines,
        "concurrency": 1,
        "retries": 0,
        "retry_max_delay": 0,
        # Each belongs to one service.
        "ledger": f"{{{{ {'ledger' if at == 'service' else 'unreached'} | default(omit) }}}}",
    }
    return {"name": f"{path} {fate}", **KEYWORDS[path], f"{MODULE}s": given}


@pytest.fixture(scope="module")
def ran(collections, postgres_server, nobody, tmp_path_factory):
    """Run everything; return the run, the service, and the entries of the ledgers."""
    directory = tmp_path_factory.mktemp("lists")

    def choose(sent):
        name = json.loads(sent.body)["name"]
        return FATES[name.split("-")[1]].answer(name)

    kinds = ("ledger", "unreached")
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
            "tasks": [of_list(path, fate) for path, fate in product(PATHS, FATES)],
        }
        ansible = Ansible(directory, collections, service.url, "local", inventory(ledgers))
        run = ansible.playbook(json.dumps([play]) + "\n", "--forks", "3", ANSIBLE_PIPELINING="true")
    return (
        run,
        service,
        {
            name: {**(entries_of(kept["ledger"]) or {}), **(entries_of(kept["unreached"]) or {})}
            for name, kept in ledgers.items()
            if kept
        },
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
    names = [json.loads(sent.body)["name"] for sent in ran[1].sent_by(ledger)]
    assert len([name for name in names if name.startswith(f"{path}-{fate}-")]) == want.requests


@pytest.mark.parametrize(("path", "ledger", "fate"), [case for case in CASES if case[1] != "none"])
def test_the_ledger_records_each(ran, path, ledger, fate):
    want, mine = expected(path, ledger, fate), f"{path}-{fate}-"
    known = {name: state for name, state in ran[2][ledger].items() if name.startswith(mine)}
    assert known == {
        f"{path}-{fate}-{name}": want.state for name in NAMES[: want.requests] if want.state
    }


def test_no_traceback(ran):
    assert "Traceback" not in ran[0].output
