"""The scripts of docs/ci/github.yml: the plan of which request is carried out, and which comment it
leaves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.checkout import CHECKOUT
from support.running import BIN

MARK = "<!-- fleet: the plan -->"
HEAD, COMMIT, OTHER = "a" * 40, "b" * 40, "c" * 40
PLAN = "fleet.plan.json"
FETCH = "Fetch the plan that was approved"
COMMENT = "Comment, in place of the comment on an earlier plan"
WORKFLOW = yaml.safe_load((CHECKOUT / "docs/ci/github.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for job in WORKFLOW["jobs"].values() for step in job["steps"]}
VALUES = {
    "github.token": "token-of-the-job",
    "github.repository": "team/fleet",
    "github.server_url": "https://github.com",
    "github.run_id": "100",
    "github.event.pull_request.number": "7",
}
needs_jq = pytest.mark.skipif(
    not shutil.which("jq"), reason="jq is not installed; gh has it inside"
)


class Repository:
    """A repository with a merged pull request 7, and a directory in which its steps run."""

    def __init__(self, directory: Path) -> None:
        self.workspace, self._state = directory / "workspace", directory / "github.json"
        self._kept, self._gh = directory / "kept", directory / "bin/gh"
        self.workspace.mkdir()
        self._gh.parent.mkdir()
        fake = Path(__file__).with_name("gh.py")
        self._gh.write_text(f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
        self._gh.chmod(0o755)
        pull = {"number": 7, "merged_at": "2026", "merge_commit_sha": COMMIT, "head": {"sha": HEAD}}
        state = {"pulls": {COMMIT: [pull]}, "artifacts": [], "comments": [], "runs": []}
        self._state.write_text(json.dumps({"kept": str(self._kept), **state}))

    @property
    def state(self) -> dict:
        """What GitHub knows."""
        return json.loads(self._state.read_text())

    def change(self, **changes: object) -> None:
        """Change what GitHub knows."""
        self._state.write_text(json.dumps({**self.state, **changes}))

    def keep(self, name: str, file: str, text: str, head: str = HEAD) -> None:
        """Keep an artifact with one file, as a run for this commit does."""
        artifacts = self.state["artifacts"]
        number, run = len(artifacts) + 1, {"head_sha": head}
        artifact = {"id": number, "name": name, "expired": False, "workflow_run": run}
        self.change(artifacts=[*artifacts, artifact])
        (self._kept / str(number)).mkdir(parents=True)
        (self._kept / str(number) / file).write_text(text)

    def run(self, name: str, **variables: str) -> subprocess.CompletedProcess:
        """Run the script of a step as `shell: bash` does, with the variables that it is given."""
        assert WORKFLOW["defaults"]["run"]["shell"] == "bash"
        given = {
            variable: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: VALUES[found[1]], value)
            for variable, value in STEPS[name]["env"].items()
        }
        environment = {
            "HOME": str(self.workspace.parent),
            "PATH": f"{self._gh.parent}:{BIN}:{os.environ['PATH']}",
            "GITHUB_RUN_ID": "100",
            "GITHUB_RUN_NUMBER": "1",
            "GITHUB_STATE": str(self._state),
            **given,
            **variables,
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path)


@needs_jq
def test_the_plan_of_the_merged_request_is_fetched(repository):
    repository.keep("plan-7", PLAN, '{"old": 1}')
    repository.keep("plan-7", PLAN, '{"new": 1}')
    repository.keep("plan-7", PLAN, '{"earlier commit": 1}', OTHER)
    repository.keep("plan-8", PLAN, '{"other request": 1}', OTHER)
    ended = repository.run(FETCH, GITHUB_SHA=COMMIT)
    assert ended.returncode == 0, ended.stdout
    assert json.loads((repository.workspace / "approved" / PLAN).read_text()) == {"new": 1}


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
    repository.keep("plan-8" if case == "of another request" else "plan-7", PLAN, "{}")
    if case == "of an earlier commit":
        repository.keep("plan-7", PLAN, "{}", OTHER)
        repository.change(artifacts=repository.state["artifacts"][1:])
    if case == "expired":
        (artifact,) = repository.state["artifacts"]
        repository.change(artifacts=[{**artifact, "expired": True}])
    if case == "contained":  # a commit of a pull request that was merged with another one
        repository.change(pulls={OTHER: repository.state["pulls"][COMMIT]})
    if case == "outdated":
        repository.change(runs=[{"number": 9}])
    sha = OTHER if case in ("direct push", "contained") else COMMIT
    ended = repository.run(FETCH, GITHUB_SHA=sha, GITHUB_RUN_NUMBER="3")
    assert ended.returncode
    assert ended.stdout.startswith(f"::error::{said}")
    assert ended.stdout.endswith("Nothing was sent.\n")
    assert not (repository.workspace / "approved").exists()


@needs_jq
def test_a_comment_replaces_its_predecessor_and_nothing_else(repository):
    person = {"id": 1, "user": {"type": "User"}, "body": f"{MARK}\nlooks good"}
    bot = {"id": 2, "user": {"type": "Bot"}, "body": "coverage: 3 %"}
    repository.change(comments=[person, bot])
    for number in range(2):
        repository.keep("comment", "comment.md", f"plan {number}\n")
        ended = repository.run(COMMENT)
        assert ended.returncode == 0, ended.stdout
    assert [each["body"] for each in repository.state["comments"]] == [
        person["body"],
        bot["body"],
        f"{MARK}\nplan 1\n",
    ]


@needs_jq
def test_a_plan_that_failed_before_it_began_is_commented(repository):
    ended = repository.run(COMMENT)
    assert ended.returncode == 0, ended.stdout
    (comment,) = repository.state["comments"]
    assert comment["body"] == (
        f"{MARK}\n**The plan failed** before it began: https://github.com/team/fleet/actions/runs/100\n"
    )
