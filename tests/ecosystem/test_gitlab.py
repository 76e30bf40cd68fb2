"""The pipeline of docs/ci in a local runner of GitLab's pipelines, with the ledger in PostgreSQL."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from ecosystem.conftest import git
from faults.behaviors import whole
from support.checkout import CHECKOUT
from support.databases import reader_of, schema_in
from support.running import BIN, TOKEN, Ansible
from support.service import Peer, Received, Service

pytestmark = pytest.mark.stress

RUNNER = CHECKOUT / ".build/gitlab/node_modules/.bin/gitlab-ci-local"
# It would need a container; without one the runner uses a shell.
IMAGE = "  image: python:3.12.12\n"
# Fills the container; here everything is installed, and the Python may be older.
INSTALLATION = re.compile(r"  before_script:  # without.*\n    - \|\n(?:      .*\n)+")
FLEET = (CHECKOUT / "docs/ci/fleet.yml").read_text(encoding="utf-8")
FLEET_LIST = FLEET[
    FLEET.index("          - name: shop01\n") : FLEET.index(
        "        fleet_application_role_defaults"
    )
]
LISTED = [f"vm{number}" for number in range(5)]
REQUEST = 7  # the number of the merge request
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

    def commit(self, listed: list[str]) -> str:
        """Commit a list of machines and return the commit."""
        machines = "".join(f"          - name: {name}\n" for name in listed)
        text = FLEET.replace(FLEET_LIST, machines)
        (self.directory / "fleet.yml").write_text(text, encoding="utf-8")
        git(self.directory, "add", "--all")
        git(self.directory, "commit", "--quiet", "--message", f"{len(listed)} machines")
        return self.head

    @property
    def head(self) -> str:
        """The commit that the pipeline is for."""
        line = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(
            line, cwd=self.directory, check=True, text=True, stdout=subprocess.PIPE
        )
        return done.stdout.strip()

    def run(self, job: str, source: str) -> subprocess.CompletedProcess:
        """Run a job of a pipeline that was started by a merge request or by a push."""
        wanted = {
            **self._variables,
            **self._scoped[job],
            "CI_PIPELINE_SOURCE": source,
            "CI_COMMIT_SHA": self.head,
        }
        options = [
            "--shell-executor-no-image",
            "--shell-isolation",
            "--home",
            self.directory.parent,
        ]
        variables = [f"--variable={name}={value}" for name, value in wanted.items()]
        return subprocess.run(
            [RUNNER, job, *options, *variables],
            cwd=self.directory,
            env={
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "HOME": str(self.directory.parent),
                "LC_ALL": "C.UTF-8",
            },
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
        pytest.fail("the runner is missing: make stress")
    project = tmp_path / "project"
    project.mkdir()
    text = (CHECKOUT / "docs/ci/gitlab-ci.yml").read_text(encoding="utf-8")
    assert IMAGE in text
    text, count = INSTALLATION.subn("  before_script: []\n", text.replace(IMAGE, ""))
    assert count == 1
    (project / ".gitlab-ci.yml").write_text(text, encoding="utf-8")
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "remote", "add", "origin", "git@gitlab.example.com:team/fleet.git")
    answers = GitLab()
    with Service(answers.script) as api:
        ledger = schema_in(postgres_server)
        yield Pipeline(project, collections, service.url, ledger, answers, api.url)


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


def test_a_plan_is_commented_approved_and_carried_out_and_a_lost_answer_settled(
    pipeline, service, ansible_once
):
    """A ledger that was a file is moved to the server; the plan of a merge request is what the
    merge sends.
    """
    commit = pipeline.commit(LISTED)
    refused = pipeline.run("plan", "merge_request_event")
    assert refused.returncode
    assert "fleet_ledger_create is false" in refused.stdout
    commented = pipeline.run("comment", "merge_request_event")
    assert commented.returncode == 0, commented.stdout
    (comment,) = pipeline.gitlab.comments
    assert comment.startswith(f"{MARK}\n\n**The plan failed**")
    assert "fleet_ledger_create is false" in comment
    ansible_once.playbook(FIRST).ok()
    file = f"{ansible_once.directory}/fleet.db"
    ansible_once.ours("move_ledger", {"ledger": file, "to": pipeline.ledger}).ok()

    planned = pipeline.run("plan", "merge_request_event")
    assert planned.returncode == 0, planned.stdout
    plan = (pipeline.artifacts / "plan/fleet.plan.json").read_bytes()
    commented = pipeline.run("comment", "merge_request_event")
    assert commented.returncode == 0, commented.stdout
    (comment,) = pipeline.gitlab.comments  # in place of the other one
    assert comment.startswith(f"{MARK}\n\n")
    assert "failed" not in comment
    assert "4 to create" in comment
    assert len(re.findall(r"^[+!] vm\d", comment, re.MULTILINE)) == 5  # one of them differs
    assert len(service.conversation()) == 1

    direct = pipeline.run("apply", "push")
    assert direct.returncode
    assert "is not the merge of a merge request" in direct.stdout
    pipeline.gitlab.merged = commit
    expired = pipeline.run("apply", "push")
    assert expired.returncode
    assert "The plan of merge request 7 has expired." in expired.stdout
    assert len(service.conversation()) == 1
    pipeline.gitlab.plan = plan

    service.fault(kind="drop", when="after", count=1)
    applied = pipeline.run("apply", "push")
    assert applied.returncode, "an answer was lost"
    assert "in doubt" in applied.stdout
    rows = json.loads((pipeline.artifacts / "apply/fleet.json").read_text())["results"]
    (doubtful,) = [row["item"] for row in rows if row["word"] == "in doubt"]

    # It goes on with the others, and sends the doubtful one no second time.
    again = pipeline.run("apply", "push")
    assert again.returncode
    created = Counter(body["name"] for body in service.bodies())
    assert created == Counter(f"vm{number}" for number in range(5)), created

    settle(ansible_once, pipeline.ledger, doubtful)
    settled = pipeline.run("apply", "push")
    assert settled.returncode == 0, settled.stdout
    assert len(service.conversation()) == 5
