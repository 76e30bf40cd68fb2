"""CSV files: a fleet from one, and the ledger as one, which another ledger adopts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

MACHINES = "infrastructure.services.compute_virtual_machines"
FILE = 'name,cpu,team,volumes[0].size_gb\nweb01,4,{{ 7 * 6 }},250\nweb02,8,"a, b",\n'


def rows(path: Path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def write(path: Path, content: list[dict]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, content[0])
        writer.writeheader()
        writer.writerows(content)


def creating(path: Path, source: str) -> list[dict]:
    text = (
        f"{{{{ lookup('ansible.builtin.file', '{source}') | infrastructure.services.from_csv }}}}"
    )
    return [{MACHINES: {"virtual_machines": text, "ledger": str(path), "max_unknown": 0}}]


@pytest.mark.matrix
def test_a_fleet_from_a_file_is_exported_and_settled_without_a_difference(ansible_once, service):
    ledger, file = ansible_once.directory / "fleet.db", ansible_once.directory / "machines.csv"
    file.write_text(FILE)
    ansible_once.tasks(creating(ledger, str(file))).ok()
    bodies = [
        {
            "name": "web01",
            "attributes": {"cpu": 4, "team": "{{ 7 * 6 }}", "volumes": [{"size_gb": 250}]},
        },
        {"name": "web02", "attributes": {"cpu": 8, "team": "a, b"}},
    ]
    assert sorted(service.bodies(), key=lambda body: body["name"]) == bodies
    here = {"ledger": str(ledger)}
    there = {"ledger": f"{ansible_once.directory}/other.db"}
    exported = ansible_once.directory / "ledger.csv"
    for name in ("ledger.csv", "ledger.json"):
        ansible_once.ours("show_ledger", {**here, "file": name}).ok()
        said = ansible_once.ours("settle", {**here, "file": name}).ok().output
        assert "ledger entries: 2 unchanged" in said
        refused = " ".join(ansible_once.ours("settle", {**there, "file": name}).output.split())
        # Which the other ledger does not have.
        assert "changed_at: this is about the entry of 20" in refused
    assert [(row["name"], row["state"], bool(row["id"])) for row in rows(exported)] == [
        ("web01", "done", True),
        ("web02", "done", True),
    ]
    write(exported, [{**row, "since": ""} for row in rows(exported)])
    said = ansible_once.ours("settle", {**there, "file": "ledger.csv"}).ok().output
    assert "ledger entries: 2 adopted" in said
    assert "adopted: web01, web02" in said
    assert len(service.conversation()) == 2
