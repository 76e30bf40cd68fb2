"""The pipelines in docs/ci use variables that exist, and the files that a report has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.infrastructure.services.plugins.module_utils._task import options
from ecosystem.test_gitlab import MARK, GitLab, run_job
from support.service import Service

ROOT = Path(__file__).resolve().parents[2]
PIPELINES = [ROOT / "docs/ci/github.yml", ROOT / "docs/ci/gitlab-ci.yml"]
SUFFIXES = {".json", ".xml", ".html", ".md"}  # of the files of a report
PINNED = ("ansible-core", "psycopg")  # as the tests have them


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_a_pipeline_names_variables_and_files_that_exist(path):
    text = path.read_text(encoding="utf-8")
    known = {name for option in options.ARGUMENT_SPEC for name in options.variables_of(option)}
    assert set(re.findall(r"INFRASTRUCTURE_SERVICES_\w+", text)) <= known
    role = yaml.safe_load((ROOT / "roles/fleet/meta/argument_specs.yml").read_text("utf-8"))
    variables = role["argument_specs"]["main.yml"]["options"]
    runs = " ".join(re.findall(r"ansible-playbook fleet.*", text))
    assert set(re.findall(r"-e (\w+)=", runs)) <= variables.keys()
    assert set(re.findall(r"fleet(?:\.plan)?(\.(?!yml|plan)\w+)", text)) <= SUFFIXES


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_a_pipeline_plans_first_and_carries_out_what_was_approved(path):
    runs = re.findall(r"ansible-playbook (fleet.*)", path.read_text(encoding="utf-8"))
    assert ["--check" in run for run in runs] == [True, False]
    assert ["fleet_approved=" in run for run in runs] == [False, True]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_a_pipeline_installs_the_versions_that_are_tested(path):
    text = path.read_text(encoding="utf-8")
    names = ("tests/requirements.txt", "tests/requirements-pytest.txt")
    ours = "".join((ROOT / name).read_text(encoding="utf-8") for name in names)
    ours = ours.replace("[binary]", "")
    theirs = (ROOT / "docs/ci/requirements.txt").read_text(encoding="utf-8")
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    for name in PINNED:
        (pin, *_older) = re.findall(rf"^({re.escape(name)}==\S+)", ours, re.MULTILINE)
        assert f"\n{pin} --hash=sha256:" in theirs
    assert f"collection install infrastructure.services:=={version}\n" in text
    installed = re.findall(r"pip install (.*)", text)
    assert {*installed} == {"--quiet --require-hashes --requirement requirements.txt"}


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_the_job_that_runs_unreviewed_code_is_given_no_token(path):
    """Nor is one given to all jobs."""
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = whole.get("jobs", whole)
    others = {name: value for name, value in whole.items() if name not in ("jobs", *jobs)}
    given = re.sub(r"-u \w+", "", json.dumps([others, jobs["plan"], whole.get("default")]))
    assert "TOKEN" not in given.upper()
    assert set(jobs["plan"].get("permissions", {}).values()) <= {"read"}
    assert jobs["apply"]["environment"] == "production"


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_a_schedule_watches_the_ledger_and_carries_nothing_out(path):
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = whole.get("jobs", whole)
    assert "TOKEN" not in json.dumps(jobs["in_doubt"]).upper()
    assert "in_doubt -e fail=true" in json.dumps(jobs["in_doubt"])
    if path.stem == "github":
        conditions = {name: job.get("if", "") for name, job in jobs.items()}
        # Otherwise, a watcher could replace a merge that waits for its turn.
        assert "github.event_name" in whole["concurrency"]["group"]
    else:
        conditions = {
            name: " ".join(rule["if"] for rule in job["rules"])
            for name, job in jobs.items()
            if "rules" in job
        }
    assert [name for name, condition in conditions.items() if "schedule" in condition] == [
        "in_doubt"
    ]
    assert re.search(r"== .push.", conditions["apply"])


def test_the_comment_on_gitlab_runs_nothing_of_the_branch_and_commands_nothing(tmp_path):
    branch, answers = tmp_path / "branch", GitLab()
    branch.mkdir()
    (tmp_path / "secret").write_text("a secret of the runner")
    (branch / "fleet.plan.md").symlink_to(tmp_path / "secret")
    (branch / "json.py").write_text("raise SystemExit('the branch runs with the token')")
    (branch / "plan.txt").write_text("virtual machines: 1 to create\n/approve\n  /merge\n")
    with Service(answers.script) as api:
        url = f"{api.url}/api/v4"
        done = run_job("comment", branch, API_TOKEN="token-for-comments", CI_API_V4_URL=url)
    assert done.returncode == 0, done.stdout
    (comment,) = answers.comments
    assert comment.startswith(f"{MARK}\n\n**The plan failed**")
    assert "virtual machines: 1 to create\n\\/approve\n  \\/merge\n" in comment
    assert "secret" not in comment
