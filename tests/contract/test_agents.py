# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AGENTS.md, CONTRIBUTING.md and noxfile.py name only what exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils import _resources
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import _for_one
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import prepare
from ansible_collections.infrastructure.services.plugins.module_utils._task.validation import (
    validate,
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("AGENTS.md", "CONTRIBUTING.md")
}
MADE = (".venv", ".build")  # by the commands
PATH = re.compile(r"(?:[\w.]+/)+[\w.-]*\w|\w+\.(?:md|py|yml|yaml|toml|txt)")


def quoted(page: str) -> list[str]:
    """What stands in backticks, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL))


def targets() -> set[str]:
    """The targets of the Makefile, those of the suites among them."""
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return set(re.findall(r"^([a-z]+) ", listed, re.MULTILINE)) | set(
        listed.rpartition(": ")[2].split()
    )


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_targets_that_exist(page):
    named = set(re.findall(r"(?<![\w/])make (?:PYTHON=\S+ )?([a-z]+)", " ".join(quoted(page))))
    assert named - targets() == set()


def test_a_page_for_agents_names_files_that_exist():
    named = [
        path
        for text in quoted("AGENTS.md")
        for path in PATH.findall(text)
        if not path.startswith(MADE)
    ]
    named += re.findall(r"\]\(([^)]+)\)", PAGES["AGENTS.md"])
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_page_for_agents_is_short():
    assert len(PAGES["AGENTS.md"].splitlines()) <= 100


def test_the_resource_on_the_page_for_contributors_is_all_of_it():
    (code,) = re.findall(r"   ```python\n(.*?)   ```", PAGES["CONTRIBUTING.md"], re.DOTALL)
    made = {"__name__": f"{_resources.__name__}.load_balancer", "__package__": _resources.__name__}
    exec(textwrap.dedent(code), made)
    spec = _for_one(made["LOAD_BALANCER"])
    given = {
        "base_url": "https://s",
        "access_token": "token",
        "name": "front",
        "attributes": {"port": "443"},
    }
    task = prepare(spec.resource, validate(spec, given).valid())
    assert task.planned().plan.body == {"name": "front", "attributes": {"port": 443}}


@pytest.fixture(scope="module")
def nox(tmp_path_factory):
    """Run nox; return its output."""
    directory = str(tmp_path_factory.mktemp("nox"))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "nox", "--envdir", directory, *arguments],
            cwd=ROOT,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def test_nox_has_the_sessions_that_the_page_names(nox):
    sessions = set(re.findall(r"^\* (\S+) ->", nox("--list"), re.MULTILINE))
    assert sessions == set(re.findall(r"`([a-z]+-checks?)`", PAGES["CONTRIBUTING.md"]))


def test_a_session_of_nox_runs(nox):
    assert "Session extra-checks was successful" in nox("--session", "extra-checks")
