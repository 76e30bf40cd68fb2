"""One playbook for each path: its hosts are the ledgers, its tasks the cases."""

from __future__ import annotations

import json
from typing import Any

from crossing.table import CPU, REFUSED, Case, cases, times

MODULE = "infrastructure.services.compute_virtual_machine"
NOTHING: dict[str, Any] = {}
KEYWORDS = {"worker": {}, "target": {"vars": {"ansible_connection": "process"}}}


def playbook(path: str, service: str, nobody: str) -> str:
    """Return the playbook, as JSON; `nobody`: the URL of a port where nothing listens."""
    play = {
        "hosts": "all",
        "gather_facts": False,
        "ignore_errors": True,
        "ignore_unreachable": True,
        "vars": {"service": service, "nobody": nobody},
        "tasks": [task(path, case) for case in cases(path)],
    }
    return json.dumps([play], indent=1) + "\n"


def task(path: str, case: Case) -> dict[str, Any]:
    """Return the task of a case."""
    at = "nobody" if case.fate == "unreachable" else "service"
    url = f"{{{{ {at} }}}}/{{{{ inventory_hostname }}}}"
    ledger = "ledger" if at == "service" else "unreached"  # each belongs to one service
    token = f"token-of-{case.machine}" + ("-{{ item }}" if case.items else "")
    keywords = {
        "until": {
            "register": "seen",
            "until": "seen.outcome == 'never'",
            "retries": times(path) - 1,
            "delay": 0,
        },
        "loop": {"loop": list(range(case.items))},
        "check": {"check_mode": True},
        "plan": {"check_mode": True},
    }.get(case.form, {})
    given = {
        "name": f"vm-{case.machine}" + ("-{{ item }}" if case.items else ""),
        "attributes": {"cpus" if case.fate == REFUSED else "cpu": CPU},
        "headers": {"X-Form": case.form},
        "retries": 0,
        "retry_max_delay": 0,
    }
    where = {"base_url": url, "ledger": f"{{{{ {ledger} }}}}"}
    if case.form != "check":  # which needs none
        where["access_token"] = token
    return {"name": case.task, **KEYWORDS[path], **keywords, MODULE: {**given, **where}}
