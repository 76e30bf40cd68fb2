"""A checkout of its own, as a release has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from antsibull_fileutils.copier import GitCopier
from support.checkout import CHECKOUT

COMMITTED = {
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
}


def git(directory: Path, *arguments: str) -> None:
    who = (
        "-c",
        "user.name=Releaser",
        "-c",
        "user.email=releaser@example.com",
        "-c",
        "commit.gpgsign=false",
    )
    subprocess.run(
        ["git", *who, *arguments], cwd=directory, check=True, env={**os.environ, **COMMITTED}
    )


@pytest.fixture(scope="session")
def checkout(tmp_path_factory) -> Path:
    """The tracked and untracked, unignored files, committed in a repository of their own."""
    directory = tmp_path_factory.mktemp("release") / "checkout"
    GitCopier().copy(CHECKOUT, directory)
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "A release")
    return directory
