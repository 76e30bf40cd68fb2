"""Ansible's commands, in a directory that can be searched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.fixtures import collections
from support.running import Ansible

__all__ = ["collections"]

# Sends a task down the ordinary module path.
ON_TARGET = {"vars": {"ansible_connection": "process"}}


class Run(NamedTuple):
    """The result of one run of a command, and where it left its files."""

    rc: int
    output: str
    directory: Path


@pytest.fixture(scope="module")
def ansible(collections: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Run one of Ansible's commands; everything it writes is below a directory of its own."""

    def run(
        command: str, *arguments: str, tasks: list[dict] | None = None, **environment: str
    ) -> Run:
        directory = tmp_path_factory.mktemp("run")
        (directory / "tmp").mkdir()
        ours = {
            "ANSIBLE_LOG_PATH": str(directory / "ansible.log"),
            "ANSIBLE_REMOTE_TMP": str(directory / "remote"),
            "HOME": str(directory),
            "INFRASTRUCTURE_SERVICES_ACCESS_TOKEN": None,
            "INFRASTRUCTURE_SERVICES_BASE_URL": None,
            "TMPDIR": str(directory / "tmp"),
        }
        if tasks:
            play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
            (directory / "play.yml").write_text(f"{json.dumps([play])}\n", encoding="utf-8")
            arguments = ("play.yml", *arguments)
        ansible = Ansible(directory, collections, "", "local")
        done = ansible.command(command, *arguments, **{**ours, **environment})
        return Run(done.rc, done.output, directory)

    return run
