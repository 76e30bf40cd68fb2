# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CSV files: a fleet from one, the ledger as one, and what is in doubt settled by one."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

SHOW, IN_DOUBT, SETTLE = (
    f"infrastructure.services.{name}" for name in ("show_ledger", "in_doubt", "settle")
)
MACHINES, INFO = (
    f"infrastructure.services.{name}" for name in ("compute_virtual_machines", "ledger_info")
)
DOUBTFUL = "SELECT count(*) FROM infrastructure_services_entry WHERE state = 'unknown'"
FILE = 'name,cpu,team,volumes[0].size_gb\nweb01,4,{{ 7 * 6 }},250\nweb02,8,"a, b",\n'


def rows(path: Path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def write(path: Path, content: list[dict]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, content[0])
        writer.writeheader()
        writer.writerows(content)


def creating(path: Path, source: str) -> str:
    return (
        json.dumps(
            [
                {
                    "hosts": "localhost",
                    "gather_facts": False,
                    "tasks": [
                        {
                            MACHINES: {
                                "virtual_machines": f"{{{{ lookup('ansible.builtin.file', '{source}')"
                                " | infrastructure.services.from_csv }}",
                                "ledger": str(path),
                                "max_unknown": 0,
                            }
                        }
                    ],
                }
            ]
        )
        + "\n"
    )


@pytest.mark.matrix
@pytest.mark.matrix
def test_a_fleet_from_a_file_is_exported_and_read_back_without_a_difference(ansible_once, service):
    ledger, file = ansible_once.directory / "fleet.db", ansible_once.directory / "machines.csv"
    file.write_text(FILE)
    ansible_once.playbook(creating(ledger, str(file))).ok()
    bodies = [
        {
            "name": "web01",
            "attributes": {"cpu": 4, "team": "{{ 7 * 6 }}", "volumes": [{"size_gb": 250}]},
        },
        {"name": "web02", "attributes": {"cpu": 8, "team": "a, b"}},
    ]
    assert sorted(service.bodies(), key=lambda body: body["name"]) == bodies
    environment = {
        "PWD": str(ansible_once.directory),
        "INFRASTRUCTURE_SERVICES_LEDGER": str(ledger),
    }
    for name in ("ledger.csv", "ledger.json"):
        ansible_once.playbook(SHOW, "-e", f"file={name}", **environment).ok()
    exported = ansible_once.directory / "ledger.csv"
    assert [(row["name"], row["state"], bool(row["id"])) for row in rows(exported)] == [
        ("web01", "done", True),
        ("web02", "done", True),
    ]
    assert exported.stat().st_mode & 0o777 == 0o600
    again = ansible_once.playbook(creating(ledger, str(exported)), "--check", "--diff").ok()
    assert "2 unchanged" in again.output
    for name in ("ledger.csv", "ledger.json"):
        said = ansible_once.playbook(SETTLE, "-e", f"file={name}", **environment).ok().output
        assert "ledger entries: 2 unchanged; 0 still in doubt" in said
        into_another = [SETTLE, "-e", f"file={name}", "-e", "ledger=other.db"]
        refused = " ".join(ansible_once.playbook(*into_another, **environment).output.split())
        assert (
            "changed_at: this is about the entry of 20" in refused
        )  # which the other ledger does not have
    write(exported, [{**row, "since": ""} for row in rows(exported)])
    into_another = [SETTLE, "-e", "file=ledger.csv", "-e", "ledger=other.db"]
    said = ansible_once.playbook(*into_another, **environment).ok().output
    assert "ledger entries: 2 adopted; 0 still in doubt" in said
    assert "adopted: web01, web02" in said
    assert len(service.conversation()) == 2


@pytest.mark.matrix
def test_forty_in_doubt_are_settled_by_one_file_all_or_none(ansible_once, service):
    ledger, file = ansible_once.directory / "fleet.db", ansible_once.directory / "machines.csv"
    file.write_text("name,cpu,team\n" + "".join(f"vm{number:02},4,web\n" for number in range(42)))
    ansible_once.playbook(creating(ledger, str(file))).ok()
    with closing(sqlite3.connect(ledger)) as database:
        database.executescript(
            "UPDATE infrastructure_services_entry SET state = 'unknown', asset = '{}'"
            " WHERE name < 'vm40'"
        )
    environment = {
        "PWD": str(ansible_once.directory),
        "INFRASTRUCTURE_SERVICES_LEDGER": str(ledger),
    }
    told = ansible_once.playbook(IN_DOUBT, **environment).ok().output
    assert "was sent with cpu 4, team web." in told
    assert told.count("ansible localhost -m") == 2 * 5
    assert f"ansible-playbook {SETTLE} -e ledger={ledger} -e file=in_doubt.csv" in told
    assert '"' not in "".join(line for line in told.splitlines() if "vm" in line)
    doubtful = ansible_once.directory / "in_doubt.csv"
    said = " ".join(
        ansible_once.playbook(IN_DOUBT, "-e", "file=in_doubt.csv", **environment)
        .ok()
        .output.split()
    )
    assert f"40 entries were written to {doubtful}" in said
    assert f"ansible-playbook {SETTLE} -e ledger={ledger} -e file={doubtful}" in said
    before = doubtful.read_bytes()
    refused = ansible_once.playbook(IN_DOUBT, "-e", "file=in_doubt.csv", **environment)
    assert "exists and is not empty, so it was not overwritten" in " ".join(refused.output.split())
    assert (refused.rc, doubtful.read_bytes()) == (2, before)
    found = rows(doubtful)
    assert {(row["state"], row["id"], row["cpu"], row["team"]) for row in found} == {
        ("unknown", "", "4", "web")
    }
    for number, row in enumerate(found):
        row.update(
            {"id": f"id-{number}"} if number < 25 else {"state": "absent"} if number < 39 else {}
        )
    of_another = next(row["id"] for row in known(ansible_once, ledger) if row["state"] == "done")
    for wrong, told in (
        ({"id": of_another}, f"line 12 (vm10): asset: its id, {of_another}, is recorded for vm40."),
        ({"cpu": "four"}, "line 12, column"),
        ({"state": "gone"}, "line 12 (vm10): state"),
    ):
        write(doubtful, [*found[:10], {**found[10], **wrong}, *found[11:]])
        refused = ansible_once.playbook(SETTLE, "-e", "file=in_doubt.csv", **environment)
        assert refused.rc == 2
        assert told in " ".join(refused.output.split())
        with closing(sqlite3.connect(ledger)) as database:
            assert database.execute(DOUBTFUL).fetchone() == (40,)
    write(doubtful, found)
    said = ansible_once.playbook(SETTLE, "-e", "file=in_doubt.csv", **environment).ok().output
    assert (
        "ledger entries: 25 settled as present, 14 settled as absent, 1 left in doubt; 1 still in doubt"
        in said
    )
    refused = ansible_once.playbook(SETTLE, "-e", "file=in_doubt.csv", **environment)
    assert "changed_at: this is about the entry of" in refused.output
    states = sorted((row["state"], row["id"]) for row in known(ansible_once, ledger))
    assert [state for state, _id in states] == ["done"] * 27 + ["unknown"]


@pytest.mark.matrix
def test_semicolons_go_out_and_come_back(ansible_once, service):
    ledger, file = ansible_once.directory / "fleet.db", ansible_once.directory / "machines.csv"
    file.write_text("sep=;\nname;cpu;team\nweb01;1.5;a;b\nweb02;4;\n".replace("a;b", '"a;b"'))
    ansible_once.playbook(creating(ledger, str(file))).ok()
    given = {"ledger": str(ledger), "file": "out.csv", "delimiter": ";"}
    ansible_once.playbook(SHOW, "-e", json.dumps(given), PWD=str(ansible_once.directory)).ok()
    out = ansible_once.directory / "out.csv"
    header, row, _other = out.read_text(encoding="utf-8").splitlines()
    assert header.startswith("name;id;state;")
    assert '"""1.5""";"a;b"' in row
    for more in ({}, {"delimiter": ""}):
        said = ansible_once.playbook(SETTLE, "-e", json.dumps({**given, **more})).ok().output
        assert "ledger entries: 2 unchanged; 0 still in doubt" in said
    refused = ansible_once.playbook(SHOW, "-e", json.dumps({**given, "delimiter": ";;"}))
    assert "exists and is not empty" in " ".join(refused.output.split())
    other = {**given, "delimiter": ";;", "file": "other.csv"}
    refused = ansible_once.playbook(SHOW, "-e", json.dumps(other))
    assert "delimiter: must be one character such as ;, not" in " ".join(refused.output.split())
    assert not (ansible_once.directory / "other.csv").exists()


def known(ansible_once, ledger: Path) -> list[dict]:
    file = ansible_once.directory / "known.csv"
    file.unlink(missing_ok=True)
    ansible_once.playbook(SHOW, "-e", f"ledger={ledger}", "-e", f"file={file}").ok()
    return rows(file)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "given", [{"file": "ledger.txt"}, {"file": "none.csv", "ledger": "none.db"}]
)
def test_what_cannot_be_written_is_refused(ansible_once, given):
    run = ansible_once.playbook(
        SHOW, "-e", json.dumps({"ledger": "none.db", **given}), PWD=str(ansible_once.directory)
    )
    assert run.rc == 2
    assert "must end in .csv or .json" in run.output or "There is no ledger at" in run.output
    assert not [*ansible_once.directory.glob("*.csv")]


def test_machines_that_exist_already_are_adopted_from_a_file(ansible_once, service):
    file = ansible_once.directory / "old.csv"
    listed = [f"old{number:03};i-{number};192.0.2.{number % 250};4\r\n" for number in range(300)]
    file.write_text("".join(["name;id;ip;cpu\r\n", *listed]))
    given = {"file": str(file), "ledger": "fleet.db", "base_url": service.url}
    planned = (
        ansible_once.playbook(SETTLE, "-e", json.dumps(given), "--check", "--diff").ok().output
    )
    assert "ledger entries in check mode: 300 adopted; " in planned
    assert len(planned.splitlines()) < 400
    said = ansible_once.playbook(SETTLE, "-e", json.dumps(given)).ok().output
    assert "ledger entries: 300 adopted; " in said
    table = ansible_once.playbook(SHOW, "-e", "ledger=fleet.db", "-e", "names=old00*").ok().output
    assert [line.split()[0] for line in table.splitlines() if line.startswith("old")] == [
        f"old{number:03}" for number in range(10)
    ]
    assert service.conversation() == []
