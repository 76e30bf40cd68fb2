# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pipeline of docs/ci in a local runner of GitLab's pipelines, with the ledger in PostgreSQL."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from ecosystem.conftest import git
from faults.behaviours import whole
from support.checkout import CHECKOUT
from support.databases import postgres_server, schema_in
from support.running import BIN, TOKEN, Ansible
from support.service import Peer, Script, Service

__all__ = ["postgres_server"]

pytestmark = pytest.mark.stress

RUNNER = CHECKOUT / ".build/gitlab/node_modules/.bin/gitlab-ci-local"
IMAGE = (
    "  image: python:3.12\n"  # which would need a container; without one the runner uses a shell
)
REQUEST = 7  # the number of the merge request
PROJECT = "/api/v4/projects/1"
COMMENTS = f"{PROJECT}/merge_requests/{REQUEST}/notes"
ARTIFACT = f"{PROJECT}/jobs/artifacts/refs%2Fmerge-requests%2F{REQUEST}%2Fhead/raw/fleet.plan.json?job=plan"
FLEET = """
- hosts: localhost
  gather_facts: false
  roles:
    - role: infrastructure.services.fleet
      vars:
        fleet_ledger: "{{ lookup('ansible.builtin.env', 'INFRASTRUCTURE_SERVICES_LEDGER') }}"
        fleet_virtual_machines: "{{ lookup('file', 'machines.csv') | infrastructure.services.from_csv }}"
"""
EMPTY = '{"fleet_virtual_machines": [], "fleet_application_roles": []}'  # as on the page
FIRST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machine: {name: vm0, attributes: {cpu: 4}, ledger: fleet.db}
"""


def gitlab(artifacts: Path) -> Script:
    """Answer what the pipeline asks GitLab for: a comment, the merge request of a commit, an
    artifact of its plan.
    """

    def script(peer: Peer) -> bool:
        if not (request := peer.request()):
            return False
        if request.path == ARTIFACT:
            peer.say(whole((artifacts / "plan/fleet.plan.json").read_bytes(), status="200 OK"))
        elif request.path.startswith(f"{PROJECT}/repository/commits/"):
            peer.say(whole(json.dumps([{"iid": REQUEST}]).encode(), status="200 OK"))
        else:
            peer.say(
                whole(b"{}", status="201 Created" if request.path == COMMENTS else "404 Not Found")
            )
        return True

    return script


class Pipeline:
    """A project whose jobs are run by the local runner."""

    def __init__(
        self, directory: Path, collections: Path, url: str, ledger: str, gitlab: Service
    ) -> None:
        self.directory, self.gitlab, self.ledger = directory, gitlab, ledger
        self._variables = {
            "INFRASTRUCTURE_SERVICES_BASE_URL": url,
            "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": TOKEN,
            "INFRASTRUCTURE_SERVICES_LEDGER": ledger,
            "API_TOKEN": "token-of-the-project",
            "CI_API_V4_URL": f"{gitlab.url}/api/v4",
            "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_IID": str(REQUEST),
            "CI_DEFAULT_BRANCH": "main",
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(directory.parent / "home"),
        }

    def run(self, job: str, source: str) -> subprocess.CompletedProcess:
        """Run a job of a pipeline that was started by a merge request or by a push."""
        wanted = {**self._variables, "CI_PIPELINE_SOURCE": source}
        line = [
            RUNNER,
            job,
            "--shell-executor-no-image",
            "--shell-isolation",
            "--home",
            self.directory.parent,
            *(f"--variable={name}={value}" for name, value in wanted.items()),
        ]
        environment = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(self.directory.parent),
            "LC_ALL": "C.UTF-8",
        }
        return subprocess.run(
            line,
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )

    @property
    def artifacts(self) -> Path:
        return self.directory / ".gitlab-ci-local/artifacts"


@pytest.fixture
def pipeline(tmp_path, collections, service, postgres_server) -> Iterator[Pipeline]:
    """The project of the page on CI, with the ledger that somebody has created by hand."""
    if not RUNNER.exists():
        pytest.fail("the runner is missing: tests/tools/foreign")
    project = tmp_path / "project"
    project.mkdir()
    text = (CHECKOUT / "docs/ci/gitlab-ci.yml").read_text(encoding="utf-8")
    assert IMAGE in text
    (project / ".gitlab-ci.yml").write_text(text.replace(IMAGE, ""), encoding="utf-8")
    (project / "fleet.yml").write_text(FLEET, encoding="utf-8")
    (project / "machines.csv").write_text(
        "name,cpu\n" + "".join(f"vm{number},4\n" for number in range(5))
    )
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "remote", "add", "origin", "git@gitlab.example.com:team/fleet.git")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "A fleet")
    with Service(gitlab(project / ".gitlab-ci-local/artifacts")) as answering:
        yield Pipeline(project, collections, service.url, schema_in(postgres_server), answering)


def play(ansible: Ansible, playbook: str, ledger: str, *variables: str) -> None:
    """Run a playbook of the collection, as somebody does by hand."""
    options = [word for variable in variables for word in ("-e", variable)]
    environment = {"INFRASTRUCTURE_SERVICES_LEDGER": ledger, "PWD": str(ansible.directory)}
    ansible.playbook(f"infrastructure.services.{playbook}", *options, **environment).ok()


def settle(ansible: Ansible, ledger: str, doubtful: str) -> None:
    """Give the one machine that is in doubt the id that the service shows."""
    file = ansible.directory / "in_doubt.csv"
    play(ansible, "in_doubt", ledger, "file=in_doubt.csv")
    (row,) = csv.DictReader(file.read_text().splitlines())
    assert row["name"] == doubtful
    known = doubtful, "found-it", *(row[column] for column in ("resource", "base_url", "state"))
    file.write_text(f"name,id,resource,base_url,state\n{','.join(known)}\n")
    play(ansible, "settle", ledger, "file=in_doubt.csv")


def test_a_plan_is_commented_approved_and_carried_out_and_a_lost_answer_settled(
    pipeline, service, ansible_once
):
    """A ledger that was a file is moved to the server; the plan of a merge request is what the
    merge sends.
    """
    refused = pipeline.run("plan", "merge_request_event")
    assert refused.returncode
    assert "fleet_ledger_create is false" in refused.stdout
    ansible_once.playbook(FLEET, "-e", EMPTY, INFRASTRUCTURE_SERVICES_LEDGER=pipeline.ledger).ok()
    ansible_once.playbook(FIRST).ok()
    play(ansible_once, "move_ledger", pipeline.ledger, "ledger=fleet.db", f"to={pipeline.ledger}")

    planned = pipeline.run("plan", "merge_request_event")
    assert planned.returncode == 0, planned.stdout
    (comment,) = [parse_qs(asked.body.decode())["body"][0] for asked in pipeline.gitlab.received]
    assert "**compute virtual machines**: 4 to create, 1 unchanged" in comment
    assert comment.count("<code>vm") == 4
    assert {"fleet.plan.html", "fleet.plan.json"} <= {
        path.name for path in (pipeline.artifacts / "plan").iterdir()
    }
    assert len(service.conversation()) == 1

    service.fault(kind="drop", when="after", count=1)
    applied = pipeline.run("apply", "push")
    assert applied.returncode, "an answer was lost"
    assert "in doubt" in applied.stdout
    (run,) = json.loads((pipeline.artifacts / "apply/fleet.json").read_text())["runs"]
    (doubtful,) = [asset["name"] for asset in run["assets"] if asset["result"] == "in doubt"]

    again = pipeline.run(
        "apply", "push"
    )  # goes on with the others, and sends the doubtful one no second time
    assert again.returncode
    created = Counter(body["name"] for body in service.bodies())
    assert created == Counter(f"vm{number}" for number in range(5)), created

    settle(ansible_once, pipeline.ledger, doubtful)
    settled = pipeline.run("apply", "push")
    assert settled.returncode == 0, settled.stdout
    assert "5 unchanged" in settled.stdout
    assert len(service.conversation()) == 5
    assert {asked.headers["private-token"] for asked in pipeline.gitlab.received} == {
        "token-of-the-project"
    }
