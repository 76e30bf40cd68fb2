# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths through symbolic links: those of this user and of root are followed, those of others are
refused.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger import paths
from ansible_collections.infrastructure.services.plugins.plugin_utils._ledger.paths import (
    open_directory,
    real_path,
)
from support.others import link_of_another


@pytest.fixture
def tree(tmp_path) -> Path:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "absolute").symlink_to(tmp_path / "a")
    (tmp_path / "relative").symlink_to("a/../a/b")
    (tmp_path / "chain").symlink_to("absolute/b")
    (tmp_path / "dangling").symlink_to("a/none")
    (tmp_path / "up").symlink_to("..")
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        "a/b/file",
        "absolute/b/file",
        "relative/file",
        "relative/../file",
        "chain/../../file",
        "dangling",
        "dangling/x",
        "none/../file",
        "up/file",
        "a//b/./file",
        "a/b/",
        "/../../etc/passwd",
    ],
)
def test_own_links_lead_where_the_system_says(tree, path):
    assert real_path(f"{tree}/{path}") == os.path.realpath(f"{tree}/{path}")


@pytest.mark.parametrize("path", ["theirs/file", "to_theirs/file", "a/../theirs", "theirs"])
def test_the_link_of_another_user_is_refused_wherever_it_is(tree, path, monkeypatch):
    link = link_of_another(tree / "theirs", "a", monkeypatch)
    (tree / "to_theirs").symlink_to("theirs/b")
    if os.geteuid():  # then the link of the fixture belongs to the other user, too
        path = path.replace("to_theirs", "theirs")
    with pytest.raises(
        ValueError, match=f"leads through {link}, a symbolic link of the user "
    ) as refused:
        real_path(f"{tree}/{path}")
    assert "Give a path without that link" in str(refused.value)


def test_links_in_a_circle_are_an_error_of_the_system(tree):
    (tree / "one").symlink_to("two")
    (tree / "two").symlink_to("one")
    with pytest.raises(OSError, match="Too many levels"):
        real_path(f"{tree}/one/file")


def test_a_directory_that_became_a_link_meanwhile_is_not_entered(tree):
    for path in (tree / "absolute", tree / "absolute/b"):
        with pytest.raises(NotADirectoryError), open_directory(str(path)):
            pass
    with open_directory(str(tree / "a")) as directory:
        assert os.stat(directory).st_ino == (tree / "a").stat().st_ino


def test_a_directory_is_entered_that_may_not_be_listed(tree):
    (tree / "a").chmod(0o300)
    with open_directory(str(tree / "a/b")) as directory:
        assert os.stat("../..", dir_fd=directory).st_ino == tree.stat().st_ino
    (tree / "a").chmod(0o700)


def test_a_user_without_a_name_is_named_by_the_id():
    own = os.geteuid()
    assert paths._user(own) == f"the user {pwd.getpwuid(own).pw_name}"
    assert paths._user(2**31 - 7) == f"the user with id {2**31 - 7}"
