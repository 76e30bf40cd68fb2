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

import pytest
from ecosystem.conftest import git
from faults.behaviours import whole
from support.checkout import CHECKOUT
from support.databases import postgres_server, reader_of, schema_in
from support.running import BIN, TOKEN, Ansible
from support.service import Peer, Received, Service

__all__ = ["postgres_server"]

pytestmark = pytest.mark.stress

RUNNER = CHECKOUT / ".build/gitlab/node_modules/.bin/gitlab-ci-local"
# It would need a container; without one the runner uses a shell.
IMAGE = "  image: python:3.12.12\n"
FLEET = (CHECKOUT / "docs/ci/fleet.yml").read_text(encoding="utf-8")
LISTED = "".join(f"          - name: vm{number}\n" for number in range(5))
REQUEST = 7  # the number of the merge request
PROJECT = "/api/v4/projects/1"
REQUEST_URL = f"{PROJECT}/merge_requests/{REQUEST}"
COMMENTS = f"{REQUEST_URL}/notes"
MARK = "<!-- fleet: the plan -->"
EMPTY = '{"fleet_virtual_machines": [], "fleet_application_roles": []}'  # as on the page
FIRST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machine: {name: vm0, attributes: {cpu: 4}, ledger: fleet.db}
"""


class GitLab:
    """What the pipeline asks GitLab for, in a project with one merge request."""

    def __init__(self, artifacts: Path) -> None:
        self.artifacts = artifacts
        self.notes: list[dict] = [{"id": 1, "body": "Looks good"}]
        self.merged: list[dict] = []  # the merge requests of each commit
        self.is_expired = False

    def script(self, peer: Peer) -> bool:
        """Answer one request."""
        if not (request := peer.request()):
            return False
        status, body = self._answer(request)
        peer.say(whole(body, status=status))
        return True

    def _answer(self, request: Received) -> tuple[str, bytes]:
        path, _question, _query = request.path.partition("?")
        if path == f"{PROJECT}/jobs/11/artifacts/fleet.plan.json" and not self.is_expired:
            return "200 OK", (self.artifacts / "plan/fleet.plan.json").read_bytes()
        answers = {
            COMMENTS: self.notes,
            REQUEST_URL: {"head_pipeline": {"id": 5}},
            f"{PROJECT}/pipelines/5/jobs": [
                {"id": 11, "name": "plan"},
                {"id": 12, "name": "other"},
            ],
        }
        if path.startswith(COMMENTS) and request.method != "GET":
            return "200 OK", json.dumps(self._write(path, json.loads(request.body))).encode()
        if path.startswith(f"{PROJECT}/repository/commits/"):
            return "200 OK", json.dumps(self._of_commit(path.split("/")[6])).encode()
        if path in answers:
            return "200 OK", json.dumps(answers[path]).encode()
        return "404 Not Found", b"{}"

    def _write(self, path: str, note: dict) -> dict:
        if path == COMMENTS:
            self.notes.append({"id": len(self.notes) + 1, **note})
        else:
            (written,) = [each for each in self.notes if path == f"{COMMENTS}/{each['id']}"]
            written.update(note)
        return note

    def _of_commit(self, commit: str) -> list[dict]:
        none = dict(state="merged", merge_commit_sha=None, squash_commit_sha=None, sha="f" * 40)
        return [{"iid": REQUEST, **none, **each(commit)} for each in self.merged]

    @property
    def comments(self) -> list[str]:
        """The comments of the pipeline."""
        return [note["body"] for note in self.notes[1:]]


class Pipeline:
    """A project whose jobs are run by the local runner."""

    def __init__(
        self, directory: Path, collections: Path, url: str, ledger: str, gitlab: GitLab, api: str
    ) -> None:
        self.directory, self.gitlab, self.ledger = directory, gitlab, ledger
        # By environment, as the file says.
        self._scoped = {
            "plan": {"INFRASTRUCTURE_SERVICES_LEDGER": reader_of(ledger)},
            "comment": {"API_TOKEN": "token-for-comments"},
            "apply": {
                "API_TOKEN": "token-for-reading",
                "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": TOKEN,
                "INFRASTRUCTURE_SERVICES_LEDGER": ledger,
            },
        }
        self._variables = {
            "INFRASTRUCTURE_SERVICES_BASE_URL": url,
            "CI_API_V4_URL": f"{api}/api/v4",
            "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_IID": str(REQUEST),
            "CI_DEFAULT_BRANCH": "main",
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(directory.parent / "home"),
        }

    def run(self, job: str, source: str) -> subprocess.CompletedProcess:
        """Run a job of a pipeline that was started by a merge request or by a push."""
        wanted = {**self._variables, **self._scoped[job], "CI_PIPELINE_SOURCE": source}
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
    head, _old, rest = FLEET.partition("          - name: shop01\n")
    rest = rest[rest.index("        fleet_application_role_defaults") :]
    (project / "fleet.yml").write_text(head + LISTED + rest, encoding="utf-8")
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "remote", "add", "origin", "git@gitlab.example.com:team/fleet.git")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "A fleet")
    answers = GitLab(project / ".gitlab-ci-local/artifacts")
    with Service(answers.script) as api:
        ledger = schema_in(postgres_server)
        yield Pipeline(project, collections, service.url, ledger, answers, api.url)


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
    commented = pipeline.run("comment", "merge_request_event")
    assert commented.returncode == 0, commented.stdout
    (comment,) = pipeline.gitlab.comments
    assert comment.startswith(f"{MARK}\n\n**The plan failed**")
    assert "fleet_ledger_create is false" in comment
    ansible_once.playbook(FLEET, "-e", EMPTY, INFRASTRUCTURE_SERVICES_LEDGER=pipeline.ledger).ok()
    ansible_once.playbook(FIRST).ok()
    play(ansible_once, "move_ledger", pipeline.ledger, "ledger=fleet.db", f"to={pipeline.ledger}")

    planned = pipeline.run("plan", "merge_request_event")
    assert planned.returncode == 0, planned.stdout
    commented = pipeline.run("comment", "merge_request_event")
    assert commented.returncode == 0, commented.stdout
    (comment,) = pipeline.gitlab.comments  # in place of the other one
    assert comment.startswith(f"{MARK}\n\n")
    assert "failed" not in comment
    assert "4 to create" in comment
    assert comment.count("<code>vm") == 5  # one of them differs
    assert len(service.conversation()) == 1

    direct = pipeline.run("apply", "push")
    assert direct.returncode
    assert "is not the merge of a merge request" in direct.stdout
    pipeline.gitlab.merged = [lambda commit: {"merge_commit_sha": commit}]
    pipeline.gitlab.is_expired = True
    expired = pipeline.run("apply", "push")
    assert expired.returncode
    assert "The plan of merge request 7 has expired." in expired.stdout
    assert len(service.conversation()) == 1
    pipeline.gitlab.is_expired = False

    service.fault(kind="drop", when="after", count=1)
    applied = pipeline.run("apply", "push")
    assert applied.returncode, "an answer was lost"
    assert "in doubt" in applied.stdout
    (run,) = json.loads((pipeline.artifacts / "apply/fleet.json").read_text())["runs"]
    (doubtful,) = [asset["name"] for asset in run["assets"] if asset["result"] == "in doubt"]

    # It goes on with the others, and sends the doubtful one no second time.
    again = pipeline.run("apply", "push")
    assert again.returncode
    created = Counter(body["name"] for body in service.bodies())
    assert created == Counter(f"vm{number}" for number in range(5)), created

    settle(ansible_once, pipeline.ledger, doubtful)
    settled = pipeline.run("apply", "push")
    assert settled.returncode == 0, settled.stdout
    assert len(service.conversation()) == 5
