# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pipeline of docs/ci in a local runner of GitLab's pipelines, with the ledger in PostgreSQL."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from ecosystem.conftest import git
from faults.behaviors import whole
from support.checkout import CHECKOUT
from support.databases import postgres_server, reader_of, schema_in
from support.running import BIN, TOKEN, Ansible
from support.service import Peer, Received, Service
from support.waiting import until

__all__ = ["postgres_server"]

pytestmark = pytest.mark.stress

RUNNER = CHECKOUT / ".build/gitlab/node_modules/.bin/gitlab-ci-local"
# It would need a container; without one the runner uses a shell.
IMAGE = "  image: python:3.12.12\n"
# Fills the container; here everything is installed, and the Python may be older.
INSTALLATION = re.compile(r"  before_script:\n    - python -m pip .*\n    - ansible-galaxy .*\n")
FLEET = (CHECKOUT / "docs/ci/fleet.yml").read_text(encoding="utf-8")
FLEET_LIST = FLEET[
    FLEET.index("          - name: shop01\n") : FLEET.index(
        "        fleet_application_role_defaults"
    )
]
LISTED = [f"vm{number}" for number in range(5)]
REQUEST, LATER = 7, 8  # the numbers of the merge requests
PROJECT = "/api/v4/projects/1"
COMMENTS = f"{PROJECT}/merge_requests/{REQUEST}/notes"
MARK = "<!-- fleet: the plan -->"
EMPTY = '{"fleet_virtual_machines": [], "fleet_application_roles": []}'  # as on the page
FIRST = """
- hosts: localhost
  gather_facts: false
  tasks:
    - infrastructure.services.compute_virtual_machine: {name: vm0, attributes: {cpu: 4}, ledger: fleet.db}
"""


class GitLab:
    """What the pipeline asks GitLab for, in a project with merge requests."""

    def __init__(self) -> None:
        self.notes: list[dict] = [{"id": 1, "body": "Looks good"}]  # of the one of REQUEST
        self.merges: dict[str, int] = {}  # the merge request that each commit has merged
        self.plans: dict[int, bytes] = {}  # of the merge requests; one that has expired is gone

    def script(self, peer: Peer) -> bool:
        """Answer one request."""
        if not (request := peer.request()):
            return False
        status, body = self._answer(request)
        peer.say(whole(body, status=status))
        return True

    def _answer(self, request: Received) -> tuple[str, bytes]:
        path, _question, _query = request.path.partition("?")
        answers: dict[str, object] = {COMMENTS: self.notes}
        for number in (REQUEST, LATER):
            if path == f"{PROJECT}/jobs/{number}1/artifacts/fleet.plan.json":
                found = number in self.plans
                return ("200 OK", self.plans[number]) if found else ("404 Not Found", b"{}")
            answers[f"{PROJECT}/merge_requests/{number}"] = {"head_pipeline": {"id": number}}
            answers[f"{PROJECT}/pipelines/{number}/jobs"] = [
                {"id": int(f"{number}1"), "name": "plan"},
                {"id": int(f"{number}2"), "name": "other"},
            ]
        if path.startswith(COMMENTS) and request.method != "GET":
            return "200 OK", json.dumps(self._write(path, json.loads(request.body))).encode()
        if path.startswith(f"{PROJECT}/repository/commits/"):
            return "200 OK", json.dumps(self._of_commit(path.split("/")[7])).encode()
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
        if commit not in self.merges:
            return []
        none = dict(squash_commit_sha=None, sha="f" * 40)
        number = self.merges[commit]
        return [{"iid": number, "state": "merged", "merge_commit_sha": commit, **none}]

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

    def plan(self, number: int = REQUEST) -> str:
        """Run the plan of a merge request, which GitLab keeps; return what was printed."""
        planned = self.run("plan", "merge_request_event")
        assert planned.returncode == 0, planned.stdout
        self.gitlab.plans[number] = (self.artifacts / "plan/fleet.plan.json").read_bytes()
        return planned.stdout

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
        line, environment = self.command(job, source)
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

    def command(self, job: str, source: str) -> tuple[list[object], dict[str, str]]:
        """Return the command that runs a job, and its environment."""
        wanted = {
            **self._variables,
            **self._scoped[job],
            "CI_PIPELINE_SOURCE": source,
            "CI_COMMIT_SHA": self.head,
        }
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
        return line, environment

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
    text, count = INSTALLATION.subn("  before_script: []\n", text.replace(IMAGE, ""))
    assert count == 1
    (project / ".gitlab-ci.yml").write_text(text, encoding="utf-8")
    git(project, "init", "--quiet", "--initial-branch", "main")
    git(project, "remote", "add", "origin", "git@gitlab.example.com:team/fleet.git")
    answers = GitLab()
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
    play(ansible_once, "move_ledger", pipeline.ledger, "ledger=fleet.db", f"to={pipeline.ledger}")

    pipeline.plan()
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
    pipeline.gitlab.merges[commit] = REQUEST
    plan = pipeline.gitlab.plans.pop(REQUEST)
    expired = pipeline.run("apply", "push")
    assert expired.returncode
    assert "The plan of merge request 7 has expired." in expired.stdout
    assert len(service.conversation()) == 1
    pipeline.gitlab.plans[REQUEST] = plan

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


@pytest.fixture
def new_ledger(pipeline, ansible_once) -> None:
    """The ledger, made by an empty list as the page says."""
    ledger = {"INFRASTRUCTURE_SERVICES_LEDGER": pipeline.ledger}
    ansible_once.playbook(FLEET, "-e", EMPTY, **ledger).ok()


@pytest.mark.usefixtures("new_ledger")
def test_of_two_merges_each_carries_out_its_own_plan_and_the_later_one_waits(pipeline, service):
    """Each was planned before the other was merged; a job that is run again continues."""
    pipeline.commit([*LISTED, "earlier"])
    pipeline.plan(REQUEST)
    pipeline.commit([*LISTED, "later"])
    pipeline.plan(LATER)
    first = pipeline.commit([*LISTED, "earlier"])
    both = pipeline.commit([*LISTED, "earlier", "later"])
    pipeline.gitlab.merges = {first: REQUEST, both: LATER}

    too_early = pipeline.run("apply", "push")
    assert too_early.returncode
    assert "earlier" in too_early.stdout
    assert "not approved" in " ".join(too_early.stdout.split()), too_early.stdout
    assert service.conversation() == []

    for commit, count in ((first, 6), (first, 6), (both, 7), (both, 7)):
        git(pipeline.directory, "checkout", "--quiet", commit)
        applied = pipeline.run("apply", "push")
        assert applied.returncode == 0, applied.stdout
        assert len(service.conversation()) == count
    created = Counter(body["name"] for body in service.bodies())
    assert created == Counter([*LISTED, "earlier", "later"])


@pytest.mark.usefixtures("new_ledger")
def test_the_plan_of_another_request_is_refused(pipeline, service):
    pipeline.commit([*LISTED, "other"])
    pipeline.plan(LATER)
    commit = pipeline.commit([*LISTED, "mine"])
    pipeline.gitlab.merges[commit] = LATER
    applied = pipeline.run("apply", "push")
    assert applied.returncode
    assert "mine" in applied.stdout
    assert service.conversation() == []


@pytest.mark.usefixtures("new_ledger")
def test_a_job_that_is_canceled_leaves_a_doubt_and_the_next_one_goes_on(
    pipeline, service, ansible_once
):
    """As GitLab does it: everything that the job has started is killed."""
    commit = pipeline.commit(["vm0"])
    pipeline.plan()
    pipeline.gitlab.merges[commit] = REQUEST
    service.fault(kind="delay", when="after", seconds=60)
    line, environment = pipeline.command("apply", "push")
    with subprocess.Popen(
        line, cwd=pipeline.directory, env=environment, start_new_session=True
    ) as job:
        until(lambda: service.conversation() or job.poll() is not None)
        started = psutil.Process(job.pid).children(recursive=True)
        os.killpg(job.pid, signal.SIGKILL)
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    again = pipeline.run("apply", "push")
    assert again.returncode
    assert "in doubt" in again.stdout
    settle(ansible_once, pipeline.ledger, "vm0")
    settled = pipeline.run("apply", "push")
    assert settled.returncode == 0, settled.stdout
    assert [body["name"] for body in service.bodies()] == ["vm0"]
