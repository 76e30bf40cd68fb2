# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A repository on GitHub that runs the scripts of docs/ci/github.yml, each step in a bash of its own.

A step has the variables that the workflow gives it and no other. `gh` is this file: it answers from
`github.json`, and records there what it was told to write.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
WORKFLOW = CHECKOUT / "docs/ci/github.yml"
REPOSITORY = "team/fleet"
GH = f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n'
INSTALLS = ("python -m pip", "ansible-galaxy collection")


class Ended(NamedTuple):
    """How a job ended."""

    is_ok: bool
    output: str


class Repository:
    """A repository with its pull requests, artifacts and comments."""

    def __init__(self, directory: Path, variables: dict[str, str]) -> None:
        """`variables`: of the machine that runs the jobs."""
        self.workspace, self._variables = directory / "workspace", variables
        self._state, self._commands = directory / "github.json", directory / "bin"
        self._kept = directory / "kept"
        self._commands.mkdir()
        (self._commands / "gh").write_text(GH)
        (self._commands / "gh").chmod(0o755)
        self.secrets: dict[str, dict[str, str]] = {"": {}}  # by environment
        self.base_url = "https://service.example.com"
        self.state = {
            "kept": str(self._kept),
            "pulls": {},
            "artifacts": [],
            "comments": [],
            "runs": [],
        }
        self.workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))

    @property
    def state(self) -> dict:
        """What GitHub knows."""
        return json.loads(self._state.read_text())

    @state.setter
    def state(self, state: dict) -> None:
        self._state.write_text(json.dumps(state))

    def change(self, **changes: object) -> None:
        """Change what GitHub knows."""
        self.state = {**self.state, **changes}

    def push(self, files: dict[str, str]) -> None:
        """Make these files the sources that the next job checks out."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        self.workspace.mkdir()
        for name, text in files.items():
            (self.workspace / name).write_text(text, encoding="utf-8")

    def merge(self, number: int, head: str, commit: str) -> None:
        """Merge a pull request whose last commit is `head`."""
        pull = {
            "number": number,
            "merged_at": "2026-01-02T03:04:05Z",
            "merge_commit_sha": commit,
            "head": {"sha": head},
        }
        self.change(pulls={**self.state["pulls"], commit: [pull]})

    def start(self, job: str, only: str = "", **github: str) -> Ended:
        """Run the steps of a job, those named `only` if given; return how it ended."""
        steps = self.workflow["jobs"][job]["steps"]
        is_ok, output, outcomes = True, "", {}
        for step in steps:
            name = step["name"]
            if only and name != only:
                continue
            if not is_ok and not re.search(r"cancelled\(\)|always\(\)", str(step.get("if", ""))):
                continue
            if "run" in step and not step["run"].startswith(INSTALLS):
                done = self._run(job, step, outcomes, github)
                output += done.stdout
                outcomes[step.get("id", "")] = "success" if done.returncode == 0 else "failure"
                is_ok = is_ok and done.returncode == 0
            elif "upload-artifact" in step.get("uses", ""):
                self.keep(step["with"], outcomes, github, job)
        return Ended(is_ok, output)

    def _run(
        self, job: str, step: dict, outcomes: dict, github: dict
    ) -> subprocess.CompletedProcess:
        return subprocess.run(
            self.line(step),
            cwd=self.workspace,
            env=self.environment(job, step, outcomes, github),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def cancelled(self, job: str, name: str, when, **github: str) -> None:
        """Run a step, and kill its shell and all that it started as soon as `when()` is true."""
        (step,) = [step for step in self.workflow["jobs"][job]["steps"] if step["name"] == name]
        with subprocess.Popen(
            self.line(step),
            cwd=self.workspace,
            env=self.environment(job, step, {}, github),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                when()
            finally:
                os.killpg(process.pid, signal.SIGKILL)

    def line(self, step: dict) -> list[str]:
        """Return the command with which GitHub runs a script of `shell: bash`."""
        assert self.workflow["defaults"]["run"]["shell"] == "bash"
        return ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]

    def environment(self, job: str, step: dict, outcomes: dict, github: dict) -> dict[str, str]:
        """Return all variables of a step."""
        given = {**self.workflow["env"], **step.get("env", {})}
        values = self._values(job, outcomes, github)
        return {
            "HOME": str(self.workspace.parent),
            "LC_ALL": "C.UTF-8",
            **self._variables,
            "PATH": f"{self._commands}:{self._variables['PATH']}",
            "GITHUB_SHA": github.get("sha", "0" * 40),
            "GITHUB_RUN_ID": "100",
            "GITHUB_RUN_NUMBER": github.get("run_number", "1"),
            "GITHUB_STATE": str(self._state),
            **{name: with_values(str(value), values) for name, value in given.items()},
        }

    def _values(self, job: str, outcomes: dict, github: dict) -> dict[str, str]:
        own = self.secrets.get(self.workflow["jobs"][job].get("environment", ""), {})
        secrets = {**self.secrets[""], **own}
        return {
            "vars.BASE_URL": self.base_url,
            "github.token": "token-of-the-job",
            "github.repository": REPOSITORY,
            "github.server_url": "https://github.com",
            "github.run_id": "100",
            "github.event.pull_request.number": github.get("number", "7"),
            **{f"steps.{name}.outcome": outcome for name, outcome in outcomes.items()},
            **{f"secrets.{name}": value for name, value in secrets.items()},
        }

    def keep(self, given: dict, outcomes: dict, github: dict, job: str) -> None:
        """Do what actions/upload-artifact does."""
        name = with_values(given["name"], self._values(job, outcomes, github))
        found = [path for pattern in given["path"].split() for path in self.workspace.glob(pattern)]
        if not found:
            assert given.get("if-no-files-found") != "error", given
            return
        number = len(self.state["artifacts"]) + 1
        artifact = {
            "id": number,
            "name": name,
            "expired": False,
            "workflow_run": {"head_sha": github.get("head", "")},
        }
        self.change(artifacts=[*self.state["artifacts"], artifact])
        (self._kept / str(number)).mkdir(parents=True)
        for path in found:
            shutil.copy(path, self._kept / str(number))


def with_values(text: str, values: dict[str, str]) -> str:
    """Return a text with the values of its expressions; a secret that a job does not have is empty."""
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values.get(found[1], ""), text)


def gh(words: list[str]) -> object:
    """Do what `gh` does, and return what it prints before a query."""
    assert os.environ["GH_TOKEN"]
    state = json.loads(Path(os.environ["GITHUB_STATE"]).read_text())
    if words[:2] == ["run", "list"]:
        return state["runs"]
    if words[:2] == ["run", "download"]:
        return _download(state, words[words.index("--name") + 1])
    (url,) = [word for word in words if word.startswith("repos/")]
    path = url.removeprefix(f"repos/{REPOSITORY}/")
    if "--method" in words:
        body = words[words.index("--field") + 1].removeprefix("body=@")
        return _comment(state, path, words[words.index("--method") + 1], Path(body).read_text())
    return _got(state, path)


def _download(state: dict, name: str) -> None:
    kept = [each["id"] for each in state["artifacts"] if each["name"] == name]
    if not kept:
        sys.exit("no valid artifacts found to download")
    shutil.copytree(Path(state["kept"], str(kept[-1])), ".", dirs_exist_ok=True)


def _comment(state: dict, path: str, method: str, body: str) -> None:
    if method == "PATCH":
        number = path.removeprefix("issues/comments/")
        (comment,) = [each for each in state["comments"] if str(each["id"]) == number]
        comment["body"] = body
    else:
        number = len(state["comments"]) + 1
        state["comments"].append({"id": number, "user": {"type": "Bot"}, "body": body})
    Path(os.environ["GITHUB_STATE"]).write_text(json.dumps(state))


def _got(state: dict, url: str) -> object:
    path, query = urlsplit(url)[2:4]
    if path.startswith("commits/"):
        return state["pulls"].get(path.split("/")[1], [])
    if path == "actions/artifacts":
        (name,) = parse_qs(query)["name"]
        return {"artifacts": [each for each in state["artifacts"] if each["name"] == name]}
    if path.endswith("/zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for each in Path(state["kept"], path.split("/")[2]).iterdir():
                archive.write(each, each.name)
        sys.stdout.buffer.write(packed.getvalue())
        return None
    assert path.endswith("/comments")
    return state["comments"]


def main(words: list[str]) -> None:
    found = gh(words)
    if found is not None:
        query = words[words.index("--jq") + 1]
        subprocess.run(
            ["jq", "--raw-output", query], input=json.dumps(found), text=True, check=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
