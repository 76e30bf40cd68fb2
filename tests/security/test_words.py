# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets made of words that occur in the assets: none is shown, and none corrupts a name, id or
body.

A credential that equals a word of its task is indistinguishable from it and stays visible where it
is data; one made of several words appears nowhere, while each of the words stays visible.
"""

from __future__ import annotations

import base64
import json
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

import pytest
from support.fixtures import collections
from support.running import Ansible, Run
from support.wire import Wire, answer, running

__all__ = ["collections"]

MODULE = "infrastructure.services.compute_virtual_machine"
WORDS = (
    "company01",
    "production",
    "web",
    "db",
    "eu-north",
    "cassandra",
    "accepted",
    "virtual",
    "a",
    "any",
    "4",
    "true",
    "caf\u00e9",
    "name",
    "attributes",
    "failed",
    "p",
)
COUNT = {"worker": 60, "become": 16}
OPTIONS = ("access_token", "client_secret", "auth_parameters", "headers")
CLIENT, OTHER = "client-of-tests", "a-credential-that-is-not-drawn"


class Drawn(NamedTuple):
    """One task: its machine, and a secret that is one of its words or is made of several."""

    name: str
    note: str  # an attribute
    platform: str  # only in the answer
    secret: str
    made: bool
    option: str  # the one whose value is the secret
    refused: bool


def drawn(path: str) -> list[Drawn]:
    """Return the tasks of a path, always the same ones."""
    chance, tasks = random.Random(f"words for the {path}"), []
    for number in range(COUNT[path]):
        words = chance.sample(WORDS, 4)
        name, note, platform = (
            f"{words[0]}-{number}-{words[1]}",
            " ".join(words[1:3]),
            chance.choice(WORDS),
        )
        made = chance.random() < 0.6
        known = [name, name[:-1], note, words[0], words[2], "p", "platform"]
        secret = f"{'.'.join(words[:3])}.{number}" if made else chance.choice(known)
        if not (secret.isascii() and " " not in secret):  # not possible in a token or a header
            secret = quote(secret)
        option = chance.choice(OPTIONS)
        tasks.append(
            Drawn(
                name,
                note,
                platform,
                secret,
                made and len(secret) >= 8,
                option,
                chance.random() < 0.4,
            )
        )
    return tasks


def envelope(task: Drawn) -> dict:
    return {
        "id": f"{task.note}/{task.name}",
        "name": task.name,
        "description": task.note,
        "service": "compute",
        "platform": task.platform,
        "region": "accepted",
        "tenant": "web",
        "attributes": attributes(task),
    }


def attributes(task: Drawn) -> dict:
    return {"cpu": 4, "datacenter": task.note, "instance": task.name}


def options(task: Drawn, number: int) -> dict:
    """Return the options of a task; the secret comes from the environment, so that no file contains
    it.
    """
    secret = f"{{{{ lookup('env', 'SECRET_{number}') }}}}"
    client = {
        "auth_url": f"{{{{ service }}}}/{number}/token",
        "client_id": CLIENT,
        "client_secret": OTHER,
    }
    by_option = {
        "access_token": {"access_token": secret},
        "client_secret": {**client, "client_secret": secret},
        "auth_parameters": {
            **client,
            "auth_parameters": {"assertion": secret, "audience": task.note},
        },
        "headers": {"access_token": OTHER, "headers": {"X-Api-Key": secret, "X-Tenant": "web"}},
    }
    return {
        "name": task.name,
        "attributes": attributes(task),
        "base_url": f"{{{{ service }}}}/{number}",
        "retries": 0,
        "ledger": "{{ playbook_dir }}/ledger.db",
        **by_option[task.option],
    }


@pytest.fixture(scope="module", params=["worker", pytest.param("become", marks=pytest.mark.matrix)])
def ran(request, collections, tmp_path_factory) -> tuple[list[Drawn], Run, Wire, dict]:
    """Run all tasks of a path at -vvvv; return them, the run, the service, and the ledger's
    content.
    """
    tasks, directory = drawn(request.param), tmp_path_factory.mktemp("words")

    def choose(sent):
        task = tasks[int(sent.case)]
        if sent.target.endswith("/token"):
            return answer(
                200,
                {
                    "access_token": f"fetched.{task.secret}",
                    "expires_in": 600,
                    "token_type": "Bearer",
                },
            )
        if task.refused:
            told = f"{task.secret} may not make {task.name}, fetched.{task.secret} neither"
            return answer(
                403, {"error": told, task.secret: task.name}, f"X-Request-Id: {task.secret}"
            )
        return answer(201, envelope(task))

    with running(choose) as service:
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "ignore_errors": True,
            "vars": {"service": service.url},
            "become": request.param == "become",
            "become_method": "myself",
            "tasks": [
                {"name": str(number), MODULE: options(task, number)}
                for number, task in enumerate(tasks)
            ],
        }
        secrets = {f"SECRET_{number}": task.secret for number, task in enumerate(tasks)}
        ansible = Ansible(directory, collections, service.url, "local")
        variables = {
            "ANSIBLE_PIPELINING": "true",
            "ANSIBLE_LOG_PATH": str(directory / "ansible.log"),
        }
        run = ansible.playbook(
            json.dumps([play]) + "\n",
            "-vvvv",
            INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None,
            **variables,
            **secrets,
        )
    with closing(sqlite3.connect(directory / "ledger.db")) as connection:
        rows = connection.execute(
            "SELECT name, sent, asset FROM infrastructure_services_entry"
        ).fetchall()
        history = connection.execute(
            "SELECT message FROM infrastructure_services_history"
        ).fetchall()
    log = (directory / "ansible.log").read_text(encoding="utf-8")
    everything = "\n".join([run.output, log, json.dumps([rows, history]), json.dumps(run.results)])
    return (
        tasks,
        replace(run, output=everything),
        service,
        {name: (sent, asset) for name, sent, asset in rows},
    )


def test_no_name_id_or_body_is_corrupted(ran):
    tasks, run, service, ledger = ran
    for number, task in enumerate(tasks):
        result, body = run.result(str(number)), {"name": task.name, "attributes": attributes(task)}
        (sent,) = [
            sent for sent in service.sent_by(str(number)) if not sent.target.endswith("/token")
        ]
        assert json.loads(sent.body) == result["request"]["body"] == body
        assert (result["outcome"], result["changed"], result["failed"]) == (
            ("rejected", False, True) if task.refused else ("accepted", True, False)
        ), task
        assert result["status"] == (403 if task.refused else 201)
        if task.refused:
            assert task.name not in ledger
            assert result["msg"].startswith(f"virtual machine {task.name}: ") or not task.made
        else:
            assert (
                result["asset"]
                == result["ansible_facts"]["compute_virtual_machine"]
                == envelope(task)
            )
            assert tuple(map(json.loads, ledger[task.name])) == (body, envelope(task))


def test_no_secret_made_of_words_is_shown(ran):
    tasks, run, _service, _ledger = ran
    made = [task for task in tasks if task.made]
    assert len(made) > len(tasks) // 3
    for task in made:
        basic = base64.b64encode(f"{CLIENT}:{task.secret}".encode()).decode()
        forms = {task.secret, quote(task.secret, safe=""), json.dumps(task.secret)[1:-1], basic}
        assert [form for form in forms if form in run.output] == [], task


def test_a_secret_that_is_a_word_is_masked_in_messages(ran):
    """The service's text about it is a message, in which it is masked as a whole word."""
    tasks, run, _service, _ledger = ran
    told = [
        run.result(str(number))["error_body"] for number, task in enumerate(tasks) if task.refused
    ]
    assert told
    for task, said in zip([task for task in tasks if task.refused], told):
        assert f"{task.secret} may not make" not in said, task


def test_a_secret_that_is_part_of_a_fields_name_leaves_the_ledger_intact(collections, tmp_path):
    """What was sent is recorded whole, so the second run has nothing to do."""
    asset = {"id": "r1", "name": "app", "attributes": {"password_location": "vault/x"}}

    def choose(sent):
        return answer(
            200,
            {"access_token": "fetched", "token_type": "Bearer"} if sent.case == "token" else asset,
        )

    with running(choose) as service:
        options = {
            "id": "r1",
            "attributes": asset["attributes"],
            "auth_url": f"{service.url}/token",
            "client_id": "me",
            "client_secret": "password",
            "ledger": "{{ playbook_dir }}/ledger.db",
        }
        tasks = [
            {"name": name, "infrastructure.services.cassandra_application_role": options}
            for name in ("a", "b")
        ]
        play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
        run = Ansible(tmp_path, collections, service.url, "local").playbook(
            json.dumps([play]) + "\n", INFRASTRUCTURE_SERVICES_ACCESS_TOKEN=None
        )
    assert [run.result(name)["changed"] for name in ("a", "b")] == [True, False]
    assert run.result("a")["asset"] == run.result("b")["asset"] == asset
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        ((sent,),) = connection.execute("SELECT sent FROM infrastructure_services_entry")
    assert json.loads(sent) == {"attributes": asset["attributes"]}
