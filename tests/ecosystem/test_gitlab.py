"""The jobs of docs/ci/gitlab-ci.yml, one after the other, with the ledger in PostgreSQL."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from faults.behaviors import whole
from support.checkout import CHECKOUT
from support.databases import reader_of, schema_in
from support.ledgers import create
from support.running import BIN, TOKEN, Ansible
from support.service import Peer, Received, Service

PIPELINE = yaml.safe_load((CHECKOUT / "docs/ci/gitlab-ci.yml").read_text(encoding="utf-8"))
FLEET = (CHECKOUT / "docs/ci/fleet.yml").read_text(encoding="utf-8")
FLEET_LIST = FLEET[
    FLEET.index("          - name: shop01\n") : FLEET.index(
        "        fleet_application_role_defaults"
    )
]
LISTED = "".join(f"          - name: vm{number}\n" for number in range(5))
REQUEST, COMMIT = 7, "b" * 40  # the number of the merge request, and the commit of its merge
PROJECT = "/api/v4/projects/1"
COMMENTS = f"{PROJECT}/merge_requests/{REQUEST}/notes"
MARK = "<!-- fleet: the plan -->"
FIRST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machine:
        {name: vm0, attributes: {cpu: 4}, ledger: '{{ playbook_dir }}/fleet.db'}
"""


class GitLab:
    """What the pipeline asks GitLab for, in a project with merge requests."""

    def __init__(self) -> None:
        self.notes: list[dict] = [{"id": 1, "body": "Looks good"}]  # of the one of REQUEST
        self.merged = ""  # the commit that has merged it
        self.plan: bytes | None = None  # None once it has expired

    def script(self, peer: Peer) -> bool:
        """Answer one request."""
        if not (request := peer.request()):
            return False
        status, body = self._answer(request)
        peer.say(whole(body, status=status))
        return True

    def _answer(self, request: Received) -> tuple[str, bytes]:
        path, _question, _query = request.path.partition("?")
        if path == f"{PROJECT}/jobs/71/artifacts/fleet.plan.json":
            return ("200 OK", self.plan) if self.plan else ("404 Not Found", b"{}")
        if path.startswith(COMMENTS) and request.method != "GET":
            return "200 OK", json.dumps(self._write(path, json.loads(request.body))).encode()
        none = dict(squash_commit_sha=None, sha="f" * 40)
        merge = {"iid": REQUEST, "state": "merged", "merge_commit_sha": self.merged, **none}
        answers: dict[str, object] = {
            COMMENTS: self.notes,
            f"{PROJECT}/merge_requests/{REQUEST}": {"head_pipeline": {"id": 70}},
            f"{PROJECT}/pipelines/70/jobs": [
                {"id": 71, "name": "plan"},
                {"id": 72, "name": "other"},
            ],
        }
        if path.startswith(f"{PROJECT}/repository/commits/"):
            answers[path] = [merge] if path.split("/")[7] == self.merged else []
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

    @property
    def comments(self) -> list[str]:
        """The comments of the pipeline."""
        return [note["body"] for note in self.notes[1:]]


def run_job(name: str, directory: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run the script of a job as a runner does, in the directory of the project."""
    return subprocess.run(
        ["/bin/bash", "-e", "-c", "\n".join(PIPELINE[name]["script"])],
        cwd=directory,
        env={
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(directory.parent),
            "TMPDIR": str(directory.parent),
            "LC_ALL": "C.UTF-8",
            "CI_PROJECT_DIR": str(directory),
            "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_IID": str(REQUEST),
            "CI_COMMIT_SHA": COMMIT,
            **variables,
        },
        stdin=subprocess.DEVNULL,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )


class Project(NamedTuple):
    """The project of the page on CI, with the ledger that somebody has created by hand."""

    directory: Path
    gitlab: GitLab
    ledger: str
    reader: str  # the ledger, for a role that may only read it
    variables: dict[str, str]  # of all jobs

    def run(self, job: str) -> subprocess.CompletedProcess:
        """Run a job with the variables of its environment, as the file says."""
        ledger = {"INFRASTRUCTURE_SERVICES_LEDGER": self.ledger}
        token = {"INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": TOKEN}
        scoped = {
            "plan": {"INFRASTRUCTURE_SERVICES_LEDGER": self.reader},
            "comment": {"API_TOKEN": "token-for-comments"},
            "apply": {"API_TOKEN": "token-for-reading", **token, **ledger},
        }
        return run_job(job, self.directory, **self.variables, **scoped[job])


@pytest.fixture
def project(tmp_path, collections, service, postgres_server) -> Iterator[Project]:
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "fleet.yml").write_text(FLEET.replace(FLEET_LIST, LISTED), encoding="utf-8")
    answers = GitLab()
    with Service(answers.script) as api:
        variables = {
            "INFRASTRUCTURE_SERVICES_BASE_URL": service.url,
            "CI_API_V4_URL": f"{api.url}/api/v4",
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_HOME": str(tmp_path / "home"),
        }
        ledger = schema_in(postgres_server)
        yield Project(directory, answers, ledger, reader_of(ledger), variables)


def settle(ansible: Ansible, ledger: str, doubtful: str) -> None:
    """Give the one machine that is in doubt the id that the service shows."""
    file = ansible.directory / "in_doubt.csv"
    given = {"ledger": ledger, "file": str(file)}
    ansible.ours("in_doubt", given).ok()
    (row,) = csv.DictReader(file.read_text().splitlines())
    assert row["name"] == doubtful
    with file.open("w", newline="") as settled:
        writer = csv.DictWriter(settled, row)
        writer.writeheader()
        writer.writerow({**row, "id": "found-it"})
    ansible.ours("settle", given).ok()


@pytest.mark.matrix
def test_a_plan_is_commented_approved_and_carried_out_and_a_lost_answer_settled(
    project, service, ansible
):
    """A ledger that was a file is moved to the server; the plan of a merge request is what the
    merge sends.
    """
    refused = project.run("plan")
    assert refused.returncode
    assert "there is no ledger at" in refused.stdout
    commented = project.run("comment")
    assert commented.returncode == 0, commented.stdout
    (comment,) = project.gitlab.comments
    assert comment.startswith(f"{MARK}\n\n**The plan failed**")
    assert "there is no ledger at" in comment
    file = create(f"{ansible.directory}/fleet.db", service.url)
    ansible.playbook(FIRST).ok()
    ansible.ours("move_ledger", {"ledger": file, "to": project.ledger}).ok()

    planned = project.run("plan")
    assert planned.returncode == 0, planned.stdout
    plan = (project.directory / "fleet.plan.json").read_bytes()
    commented = project.run("comment")
    assert commented.returncode == 0, commented.stdout
    (comment,) = project.gitlab.comments  # in place of the other one
    assert comment.startswith(f"{MARK}\n\n")
    assert "failed" not in comment
    assert "4 to create" in comment
    assert len(re.findall(r"^\+ vm\d", comment, re.MULTILINE)) == 4
    assert len(service.conversation()) == 1

    direct = project.run("apply")
    assert direct.returncode
    assert "is not the merge of a merge request" in direct.stdout
    project.gitlab.merged = COMMIT
    expired = project.run("apply")
    assert expired.returncode
    assert "The plan of merge request 7 has expired." in expired.stdout
    assert len(service.conversation()) == 1
    project.gitlab.plan = plan

    service.fault(kind="drop", when="after", skip=3, count=1)  # of the fourth and last
    applied = project.run("apply")
    assert applied.returncode, "an answer was lost"
    assert "in doubt" in applied.stdout
    rows = json.loads((project.directory / "fleet.json").read_text())["results"]
    (doubtful,) = [row["item"] for row in rows if row["word"] == "in doubt"]

    # The doubtful one is sent no second time.
    again = project.run("apply")
    assert again.returncode
    created = Counter(body["name"] for body in service.bodies())
    assert created == Counter(f"vm{number}" for number in range(5)), created

    settle(ansible, project.ledger, doubtful)
    settled = project.run("apply")
    assert settled.returncode == 0, settled.stdout
    assert len(service.conversation()) == 5
