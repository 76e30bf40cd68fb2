"""Runs as a report has them, the same each time, and their pages."""

from __future__ import annotations

import heapq
import random

from ansible_collections.infrastructure.services.plugins.plugin_utils._screen import report
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.rows import (
    FORMAT,
    Run,
)

SERVICE, LEDGER = "https://infrastructure.example.com", "/srv/fleet/fleet.db"
MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
SETTLE = f"ansible-playbook infrastructure.services.in_doubt -e ledger={LEDGER}"
LOST = (
    "The connection was lost before an answer came. It is unknown whether the virtual machine was created. Look "
    "for it on the service."
)
REFUSED = "The service rejected it (422). Nothing was created. Correct its attributes, and run the task again."


def page_of(run: dict) -> str:
    """The page of a run."""
    return report.page(Run.from_json(run), "/srv/fleet/fleet.plan.json")


def run_of(rows: list[dict], **more: object) -> dict:
    """A run of machines."""
    return {
        "format": FORMAT,
        "run": "4711-web",
        "state": "ended",
        "began_at": "2026-11-23T09:12:04Z",
        "ended_at": "2026-11-23T09:12:14Z",
        "service": SERVICE,
        "ledger": LEDGER,
        "ledger_id": "1",
        "warnings": [],
        "by": "ci@controller",
        "counts": {},
        "results": rows,
        **more,
    }


def row_of(name: str, word: str, **more: object) -> dict:
    """A row of a run that needed no request unless `more` says so."""
    return {
        "resource": MACHINE,
        "item": name,
        "word": word,
        "outcome": "not_sent",
        "changed": False,
        "failed": False,
        **more,
    }


def known(found: str, address: str) -> dict:
    """The part of an envelope that a report has."""
    return {"id": found, "attributes": {"ip": address}}


def fleet(number: int = 500) -> dict:
    """A run with two rejected, one in doubt, seven 429s, and 40 that existed."""
    chance, assets, free = random.Random(29), [], [0.0] * 4
    for index in range(40, number):
        begun = heapq.heappop(free)
        if index < 400 and index % 12 == 0 and len(free) < 11:
            heapq.heappush(free, begun)  # one request more at once
        seconds = 0.12 + 0.14 * chance.random() + (0.3 * chance.random() if index % 97 < 20 else 0)
        is_limited = number // 2 <= index < number // 2 + 7
        seconds = round(seconds + 0.8 * is_limited, 3)
        more = {
            "status": 201,
            "asset": known(f"vm-{chance.randrange(16**8):08x}", f"192.0.2.{index % 250 + 1}"),
            "outcome": "accepted",
            "changed": True,
        }
        assets.append(
            row_of(
                f"web{index:03}",
                "created",
                **{
                    **more,
                    "request_attempts": 1 + is_limited,
                    "begun_after": round(begun, 3),
                    "seconds": seconds,
                },
            )
        )
        heapq.heappush(free, begun + seconds)
    for asset in (assets[59], assets[60], assets[267]):
        del asset["asset"]
    assets[59].update(
        word="in doubt",
        outcome="unknown",
        failed=True,
        seconds=1.3,
        msg=LOST,
        command=SETTLE,
        since="2026-11-23T09:12:07Z",
    )
    del assets[59]["status"]
    for asset in (assets[60], assets[267]):
        asset.update(
            word="rejected",
            outcome="rejected",
            failed=True,
            changed=False,
            status=422,
            msg=REFUSED,
        )
    assets = [
        row_of(
            f"web{index:03}", "unchanged", asset=known(f"vm-{index:08x}", f"192.0.2.{index + 1}")
        )
        for index in range(40)
    ] + assets
    return run_of(assets)


def plan() -> dict:
    """A plan with creations, updates, losses, a difference, a doubt, and what is left alone."""
    attributes = {"team": "web", "cpu": 4, "operating_system": "Debian 13"}
    new = [
        row_of(
            f"new{index}",
            "to create",
            plan="create",
            changed=True,
            body={
                "name": f"new{index}",
                "attributes": {**attributes, "ip": f"192.0.2.{index}", "vm_ram": 16 * index},
            },
        )
        for index in (1, 2, 3)
    ]
    drift = row_of(
        "drift",
        "differs",
        plan="differs",
        asset=known("vm-2", "192.0.2.9"),
        msg="it is recorded with different values",
        changes=[
            {"name": "attributes.cpu", "old": 2, "new": 8},
            {"name": "attributes.dns_names", "new": ["a.example", "b.example"]},
        ],
    )
    lost = row_of(
        "lost",
        "in doubt",
        plan="in_doubt",
        outcome="unknown",
        since="2026-11-22T10:02:03Z",
        command=SETTLE,
        msg=LOST,
    )
    role = row_of(
        "role-1",
        "to update",
        plan="update",
        changed=True,
        resource=ROLE,
        asset={"id": "role-1"},
        msg="these fields are known and not sent: login. send: complete keeps them.",
        body={"description": "two"},
        changes=[{"name": "description", "old": "one", "new": "two"}],
        unsent=[
            {"name": "attributes.login", "value": True},
            {"name": "attributes.cluster_id", "value": "c-7"},
        ],
    )
    gone = [
        row_of(f"gone{index}", "not listed", plan="not_listed", skipped=True) for index in (1, 2)
    ]
    kept = [
        row_of(
            f"web{index}", "unchanged", plan="keep", asset=known(f"vm-{index}", f"192.0.2.{index}")
        )
        for index in range(114)
    ]
    return run_of([*kept, *new, drift, lost, *gone, role], state="planned")
