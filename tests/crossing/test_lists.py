"""The plural module: places and ledgers crossed with fates, in one run."""

from __future__ import annotations

import json
from itertools import product
from typing import NamedTuple

import pytest
from crossing.conftest import create_all, located, recorded
from crossing.playbook import KEYWORDS, MODULE
from crossing.table import CPU, LEDGERS, PATHS, created
from support.wire import Last, answer

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
REFUSED = Fate(None, (), "not_sent", 0, says="works in the Ansible worker alone")


def expected(path: str, ledger: str, fate: str) -> Fate:
    return REFUSED if path == "target" and ledger != "none" else FATES[fate]


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
        "ledger": f"{{{{ {'ledger' if at == 'service' else 'unreached'} }}}}",
    }
    return {"name": f"{path} {fate}", **KEYWORDS[path], f"{MODULE}s": given}


@pytest.fixture(scope="module")
def ran(played, postgres_server, nobody, tmp_path_factory):
    """Run everything; return what was played, and the entries of the ledgers."""

    def choose(sent):
        name = json.loads(sent.body)["name"]
        return FATES[name.split("-")[1]].answer(name)

    kinds = located([*LEDGERS], tmp_path_factory.mktemp("lists"), postgres_server)
    tasks = [of_list(path, fate) for path, fate in product(PATHS, FATES)]
    done = played(
        tasks,
        choose,
        kinds,
        prepare=lambda service, _directory: create_all(kinds, service, nobody),
        nobody=nobody,
    )
    return done, {kind: recorded(kept) for kind, kept in kinds.items()}


@pytest.mark.parametrize(("path", "ledger", "fate"), CASES)
def test_a_list_reports_what_happened_to_each(ran, path, ledger, fate):
    done, entries = ran
    want, result = expected(path, ledger, fate), done.run.on(ledger).result(f"{path} {fate}")
    assert [item["outcome"] for item in result.get("results", [])] == list(want.outcomes), result
    is_ok = want is FATES["ok"]
    seen = (result["outcome"], result["failed"], result["changed"])
    assert seen == (want.outcome, not is_ok, is_ok)
    assert want.says in " ".join(
        [result.get("msg", ""), *(item.get("msg", "") for item in result.get("results", ()))]
    )
    mine = [f"{path}-{fate}-{name}" for name in NAMES]
    made = {name: created(name) for name in mine} if is_ok else {}
    assert result.get("ansible_facts", {}).get("compute_virtual_machines", {}) == made
    names = [json.loads(sent.body)["name"] for sent in done.service.sent_by(ledger)]
    assert len([name for name in names if name in mine]) == want.requests
    known = {name: state for name, state in entries[ledger].items() if name in mine}
    has_states = ledger != "none" and want.state
    assert known == dict.fromkeys(mine[: want.requests] if has_states else [], want.state)
