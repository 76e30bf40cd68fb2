# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts of docs/ci/github.yml: the plan of which request is carried out, and which comment it
leaves.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from ecosystem.workflows import CHECKOUT, Repository
from support.databases import postgres_server, reader_of, schema_in
from support.running import BIN, TOKEN
from support.waiting import until

__all__ = ["postgres_server"]

MARK = "<!-- fleet: the plan -->"
HEAD, COMMIT, OTHER = "a" * 40, "b" * 40, "c" * 40
FETCH, APPLY = "Fetch the plan that was approved", "Carry it out"
FLEET = (CHECKOUT / "docs/ci/fleet.yml").read_text(encoding="utf-8")
needs_jq = pytest.mark.skipif(
    not shutil.which("jq"), reason="jq is not installed; gh has it inside"
)


@pytest.fixture
def repository(tmp_path) -> Repository:
    """A repository with a merged pull request 7."""
    found = Repository(tmp_path, {"PATH": f"{BIN}:{os.environ['PATH']}"})
    found.push({"fleet.yml": FLEET})
    found.merge(7, HEAD, COMMIT)
    return found


def plan_of(repository: Repository, number: int, head: str, text: str = "{}") -> None:
    """Keep a plan, as the job `plan` of a pull request does."""
    (repository.workspace / "fleet.plan.json").write_text(text)
    given = {"name": f"plan-{number}", "path": "fleet.plan.*"}
    repository.keep(given, {}, {"head": head}, "plan")
    (repository.workspace / "fleet.plan.json").unlink()


def approved(repository: Repository) -> Path:
    return repository.workspace / "approved/fleet.plan.json"


@needs_jq
def test_the_plan_of_the_merged_request_is_fetched(repository):
    plan_of(repository, 7, HEAD, '{"old": 1}')
    plan_of(repository, 7, HEAD, '{"new": 1}')
    plan_of(repository, 7, OTHER, '{"earlier commit": 1}')
    plan_of(repository, 8, OTHER, '{"other request": 1}')
    ended = repository.start("apply", FETCH, sha=COMMIT)
    assert ended.is_ok, ended.output
    assert json.loads(approved(repository).read_text()) == {"new": 1}


@needs_jq
@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("of another request", "Pull request 7 was merged without a plan of its last commit."),
        ("of an earlier commit", "Pull request 7 was merged without a plan of its last commit."),
        ("expired", "The plan of pull request 7 has expired."),
        ("direct push", f"{OTHER} is not the merge of a pull request, so no plan was approved."),
        ("contained", f"{OTHER} is not the merge of a pull request, so no plan was approved."),
        ("outdated", "Run 9 has applied a newer commit, so this one is outdated."),
    ],
)
def test_without_the_plan_of_the_merged_request_nothing_is_sent(repository, case, said):
    plan_of(repository, 8 if case == "of another request" else 7, HEAD)
    if case == "of an earlier commit":
        plan_of(repository, 7, OTHER)
        repository.change(artifacts=repository.state["artifacts"][1:])
    if case == "expired":
        (artifact,) = repository.state["artifacts"]
        repository.change(artifacts=[{**artifact, "expired": True}])
    if case == "contained":  # a commit of a pull request that was merged with another one
        repository.change(pulls={OTHER: repository.state["pulls"][COMMIT]})
    if case == "outdated":
        repository.change(runs=[{"number": 9}])
    sha = OTHER if case in ("direct push", "contained") else COMMIT
    ended = repository.start("apply", FETCH, sha=sha, run_number="3")
    assert not ended.is_ok
    assert ended.output.startswith(f"::error::{said}")
    assert ended.output.endswith("Nothing was sent.\n")
    assert not approved(repository).exists()


@needs_jq
def test_a_comment_replaces_its_predecessor_and_nothing_else(repository):
    person = {"id": 1, "user": {"type": "User"}, "body": f"{MARK}\nlooks good"}
    bot = {"id": 2, "user": {"type": "Bot"}, "body": "coverage: 3 %"}
    repository.change(comments=[person, bot])
    for number in range(2):
        (repository.workspace / "comment.md").write_text(f"plan {number}\n")
        given = {"name": "comment", "path": "comment.md"}
        repository.keep(given, {}, {}, "plan")
        ended = repository.start("comment")
        assert ended.is_ok, ended.output
    assert [each["body"] for each in repository.state["comments"]] == [
        person["body"],
        bot["body"],
        f"{MARK}\nplan 1\n",
    ]


@needs_jq
def test_a_plan_that_failed_before_it_began_is_commented(repository):
    ended = repository.start("comment")
    assert ended.is_ok, ended.output
    (comment,) = repository.state["comments"]
    assert comment["body"] == (
        f"{MARK}\n**The plan failed** before it began: https://github.com/team/fleet/actions/runs/100\n"
    )


class Story:
    """A repository with a service and a ledger in PostgreSQL."""

    def __init__(self, repository: Repository, url: str, ledger: str, reader: str) -> None:
        self.repository = repository
        repository.base_url = url
        repository.secrets = {
            "": {"PLAN_LEDGER": reader},
            "production": {"ACCESS_TOKEN": TOKEN, "LEDGER": ledger},
        }

    def plan(self, number: int, head: str, fleet: str) -> tuple[bool, str, str]:
        """Open a pull request; return whether the plan is fine, its log and the comment."""
        self.repository.push({"fleet.yml": fleet})
        self.repository.change(comments=[])
        ended = self.repository.start("plan", number=str(number), head=head)
        self.repository.start("comment", number=str(number))
        (comment,) = self.repository.state["comments"]
        return ended.is_ok, ended.output, comment["body"]

    def merge(self, number: int, head: str, fleet: str, run_number: int) -> tuple[bool, str]:
        """Merge it; return whether the run is fine, and its log."""
        commit = head[::-1]
        self.repository.merge(number, head, commit)
        self.repository.push({"fleet.yml": fleet})
        ended = self.repository.start("apply", sha=commit, run_number=str(run_number))
        if ended.is_ok:
            runs = [{"number": run_number}, *self.repository.state["runs"]]
            self.repository.change(runs=sorted(runs, key=lambda run: -run["number"]))
        return ended


def fleet_of(*names: str) -> str:
    """Return a playbook like docs/ci/fleet.yml for these machines."""
    head, _old, rest = FLEET.partition("          - name: shop01\n")
    machines = "".join(f"          - name: {name}\n" for name in names)
    return head + machines + rest[rest.index("        fleet_application_role_defaults") :]


@pytest.fixture
def story(tmp_path, collections, service, postgres_server, ansible_once) -> Story:
    ledger = schema_in(postgres_server)
    variables = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    directory = tmp_path / "github"
    directory.mkdir()
    told = Story(Repository(directory, variables), service.url, ledger, reader_of(ledger))
    empty = '{"fleet_virtual_machines": [], "fleet_application_roles": []}'
    ansible_once.playbook(FLEET, "-e", empty, INFRASTRUCTURE_SERVICES_LEDGER=ledger).ok()
    return told


@needs_jq
@pytest.mark.stress
def test_a_role_that_may_only_read_plans_without_a_token_and_the_merge_carries_it_out(
    story, service
):
    is_ok, log, comment = story.plan(7, HEAD, FLEET)
    assert is_ok, log
    assert "virtual machines: 3 to create" in log
    assert comment.startswith(f"{MARK}\n")
    assert "3 to create" in comment
    assert "failed" not in comment
    environment = story.repository.environment(
        "plan", story.repository.workflow["jobs"]["plan"]["steps"][2], {}, {}
    )
    assert "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN" not in environment
    assert service.conversation() == []

    is_ok, log = story.merge(7, HEAD, FLEET, 1)
    assert is_ok, log
    assert "3 created" in log
    is_ok, log = story.merge(7, HEAD, FLEET, 1)  # run again
    assert is_ok, log
    assert "3 unchanged" in log
    assert len(service.conversation()) == 3

    # A role that may only read cannot record: whoever removes --check there sends nothing.
    ended = story.repository.start("plan", "Plan", number="7")
    assert ended.is_ok
    story.repository.workflow["jobs"]["plan"]["steps"][2]["run"] = "ansible-playbook fleet.yml"
    story.repository.workflow["jobs"]["plan"]["steps"][2]["env"][
        "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN"
    ] = TOKEN
    story.repository.push({"fleet.yml": fleet_of("shop04")})
    ended = story.repository.start("plan", "Plan", number="7")
    assert not ended.is_ok
    assert "the role of the URL lacks" in ended.output
    assert len(service.conversation()) == 3


@needs_jq
@pytest.mark.stress
def test_a_failing_plan_leaves_a_comment_that_says_why(story, service):
    is_ok, log, comment = story.plan(7, HEAD, FLEET.replace("cpu: 8", "cpus: 8"))
    assert not is_ok
    assert "**The plan failed**" in comment
    assert "cpus" in comment
    assert [each["name"] for each in story.repository.state["artifacts"]] == ["comment"]
    is_ok, log = story.merge(7, HEAD, FLEET, 1)
    assert not is_ok
    assert "Pull request 7 was merged without a plan" in log
    assert service.conversation() == []


@needs_jq
@pytest.mark.stress
def test_two_merges_whose_plans_do_not_know_each_other(story, service):
    """The second is refused until the first has been carried out, and an old one is not repeated."""
    first, second = fleet_of("a1"), fleet_of("b1")
    both = fleet_of("a1", "b1")
    assert story.plan(7, HEAD, first)[0]
    assert story.plan(8, OTHER, second)[0]
    is_ok, log = story.merge(8, OTHER, both, 2)
    assert not is_ok
    assert "a1: the plan does not send it" in log
    assert service.conversation() == []
    assert story.merge(7, HEAD, first, 1).is_ok
    ended = story.merge(8, OTHER, both, 2)
    assert ended.is_ok, ended.output
    assert "1 created, 1 unchanged" in ended.output
    ended = story.merge(7, HEAD, first, 1)
    assert not ended.is_ok
    assert "Run 2 has applied a newer commit" in ended.output
    assert sorted(body["name"] for body in service.bodies()) == ["a1", "b1"]


@needs_jq
@pytest.mark.stress
def test_a_run_that_was_cancelled_leaves_a_doubt_and_sends_nothing_twice(story, service):
    fleet = fleet_of("a1")
    assert story.plan(7, HEAD, fleet)[0]
    story.repository.merge(7, HEAD, COMMIT)
    assert story.repository.start("apply", FETCH, sha=COMMIT).is_ok
    service.settings(delay={"create_virtual_machine": 60})
    story.repository.cancelled("apply", APPLY, lambda: until(service.conversation), sha=COMMIT)
    service.settings(delay={})
    ended = story.merge(7, HEAD, fleet, 1)
    assert not ended.is_ok
    assert "in doubt" in ended.output
    assert "infrastructure.services.in_doubt" in ended.output
    assert len(service.conversation()) == 1
