# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's commands, in the running Python, on the collection in the checkout, in a directory that
can be searched.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from support.checkout import CHECKOUT
from support.running import PLUGINS

# Sends a task down the ordinary module path; as root, since files would have to be handed to
# another user.
BECOME = {"become": True, "become_method": "myself", "become_user": "root"}


class Run(NamedTuple):
    """The result of one run of a command, and where it left its files."""

    rc: int
    output: str
    directory: Path


@pytest.fixture(scope="module")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Run one of Ansible's commands; everything it writes is below a directory of its own."""
    collections = tmp_path_factory.mktemp("collections")
    (collections / "ansible_collections/infrastructure").mkdir(parents=True)
    (collections / "ansible_collections/infrastructure/services").symlink_to(
        CHECKOUT, target_is_directory=True
    )

    def run(
        command: str, *arguments: str, tasks: list[dict] | None = None, **environment: str
    ) -> Run:
        directory = tmp_path_factory.mktemp("run")
        (directory / "tmp").mkdir()
        for empty in ("ansible.cfg", "hosts"):
            (directory / empty).touch()
        if tasks:
            play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
            (directory / "play.yml").write_text(
                yaml.safe_dump([play], allow_unicode=True), encoding="utf-8"
            )
            arguments = ("play.yml", *arguments)
        ours = {
            "ANSIBLE_BECOME_PLUGINS": str(PLUGINS / "become"),
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_CONFIG": str(directory / "ansible.cfg"),
            "ANSIBLE_INVENTORY": str(directory / "hosts"),
            "ANSIBLE_HOME": str(directory / "home"),
            "ANSIBLE_LOG_PATH": str(directory / "ansible.log"),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "ANSIBLE_REMOTE_TMP": str(directory / "remote"),
            "HOME": str(directory),
            "LC_ALL": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(directory / "tmp"),
        }
        done = subprocess.run(
            [str(Path(sys.prefix) / "bin" / command), *arguments],
            cwd=directory,
            env={**ours, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        return Run(done.returncode, done.stdout, directory)

    return run
