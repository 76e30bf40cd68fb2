# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs as a report has them, the same each time, and their pages."""

from __future__ import annotations

import heapq
import random

from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    Asset,
    Run,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.formats import FORMATS

SERVICE, LEDGER = "https://infrastructure.example.com", "/srv/fleet/fleet.db"
MACHINE, ROLE = "compute_virtual_machine", "cassandra_application_role"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SETTLE = f"ansible-playbook infrastructure.services.in_doubt -e ledger={LEDGER}"
LOST = (
    "The connection was lost before an answer came. It is unknown whether the virtual machine was created. Look "
    "for it on the service."
)
REFUSED = "The service rejected it (422). Nothing was created. Correct its attributes, and run the task again."


def page_of(run: dict) -> str:
    """The page of a run."""
    return FORMATS[".html"].text_of(typed(run), "/srv/fleet/fleet.plan.json")


def typed(run: dict) -> Run:
    """The same run as the code has it."""
    return Run(**{**run, "assets": [Asset(**asset) for asset in run["assets"]]})


def run_of(assets: list[dict], counts: dict[str, int], **more: object) -> dict:
    """A run of machines."""
    return {
        "run": "4711-web",
        "state": "ended",
        "began_at": "2026-11-23T09:12:04Z",
        "ended_at": "2026-11-23T09:12:14Z",
        "service": SERVICE,
        "ledger": LEDGER,
        "ledger_id": "1",
        "warnings": [],
        "by": "ci@controller",
        "counts": {MACHINE: counts},
        "assets": assets,
        **more,
    }


def asset_of(name: str, result: str, **more: object) -> dict:
    """An asset of a run that needed no request unless `more` says so."""
    return {
        "resource": MACHINE,
        "name": name,
        "result": result,
        "outcome": "not_sent",
        "changed": False,
        "failed": False,
        **more,
    }


def fleet(number: int = 500) -> dict:
    """A run with two rejected, one in doubt, seven 429s, and 40 that existed."""
    chance, assets, free = random.Random(29), [], [0.0] * 4
    for index in range(40, number):
        begun = heapq.heappop(free)
        if index < 400 and index % 12 == 0 and len(free) < 11:
            heapq.heappush(free, begun)  # one request more at once
        seconds = 0.12 + 0.14 * chance.random() + (0.3 * chance.random() if index % 97 < 20 else 0)
        waits = [[round(begun + 0.1, 3), 0.8]] if number // 2 <= index < number // 2 + 7 else []
        seconds = round(seconds + sum(each for _at, each in waits), 3)
        more = {
            "status": 201,
            "id": f"vm-{chance.randrange(16**8):08x}",
            "outcome": "accepted",
            "changed": True,
        }
        assets.append(
            asset_of(
                f"web{index:03}",
                "created",
                **{
                    **more,
                    "address": f"192.0.2.{index % 250 + 1}",
                    "request_attempts": 1 + len(waits),
                    "trace_id": TRACE,
                    "begun_after": round(begun, 3),
                    "seconds": seconds,
                    **({"waits": waits} if waits else {}),
                },
            )
        )
        heapq.heappush(free, begun + seconds)
    for asset in (assets[59], assets[60], assets[267]):
        del asset["id"], asset["address"]
    assets[59].update(
        result="in doubt",
        outcome="unknown",
        failed=True,
        seconds=1.3,
        cause=LOST,
        command=SETTLE,
        since="2026-11-23T09:12:07Z",
        msg=f"virtual machine {assets[59]['name']}: {LOST}",
    )
    del assets[59]["status"]
    for asset in (assets[60], assets[267]):
        asset.update(
            result="rejected",
            outcome="rejected",
            failed=True,
            changed=False,
            status=422,
            cause=REFUSED,
            msg=f"virtual machine {asset['name']}: {REFUSED}",
        )
    assets = [
        asset_of(
            f"web{index:03}", "unchanged", id=f"vm-{index:08x}", address=f"192.0.2.{index + 1}"
        )
        for index in range(40)
    ] + assets
    counts = {"created": number - 43, "unchanged": 40, "in doubt": 1, "rejected": 2}
    return run_of(assets, counts)


def plan() -> dict:
    """A plan with creations, updates, losses, a difference, a doubt, and what is left alone."""
    attributes = {"team": "web", "cpu": 4, "operating_system": "Debian 13"}
    new = [
        asset_of(
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
    drift = asset_of(
        "drift",
        "differs",
        plan="differs",
        id="vm-2",
        address="192.0.2.9",
        changes=[
            {"name": "attributes.cpu", "old": 2, "new": 8},
            {"name": "attributes.dns_names", "new": ["a.example", "b.example"]},
        ],
    )
    lost = asset_of(
        "lost",
        "in doubt",
        plan="in_doubt",
        outcome="unknown",
        since="2026-11-22T10:02:03Z",
        command=SETTLE,
        cause=LOST,
    )
    role = asset_of(
        "role-1",
        "to update",
        plan="update",
        changed=True,
        resource=ROLE,
        id="role-1",
        body={"description": "two"},
        changes=[{"name": "description", "old": "one", "new": "two"}],
        unsent=[
            {"name": "attributes.login", "value": True},
            {"name": "attributes.cluster_id", "value": "c-7"},
        ],
    )
    gone = [asset_of(f"gone{index}", "not listed", skipped=True) for index in (1, 2)]
    kept = [
        asset_of(
            f"web{index}", "unchanged", plan="keep", id=f"vm-{index}", address=f"192.0.2.{index}"
        )
        for index in range(114)
    ]
    counts = {"to create": 3, "differs": 1, "in doubt": 1, "not listed": 2, "unchanged": 114}
    planned = run_of([*kept, *new, drift, lost, *gone, role], counts, state="planned")
    planned["counts"][ROLE] = {"to update": 1}
    return planned
