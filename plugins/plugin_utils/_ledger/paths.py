# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths through directories that others may write to; links of other users are not followed."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from contextlib import contextmanager
from typing import Iterator

_MOST_LINKS = 40  # in one path, as on Linux
# O_PATH needs no permission to list the directory.
_PART = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW


def real_path(path: str) -> str:
    """Return an absolute path without its symbolic links, as os.path.realpath does.

    Raises ValueError if another user made one of them, OSError if there are too many.
    """
    found = os.sep
    left = path.split(os.sep)[::-1]
    links = 0
    while left:
        part = left.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            found = os.path.dirname(found)
            continue
        step = os.path.join(found, part)
        owner = _owner_of_link(step)
        if owner is None:
            found = step
            continue
        _require_trusted(path, step, owner)
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(step)
        if os.path.isabs(target):
            found = os.sep
        left += target.split(os.sep)[::-1]
    return found


def _require_trusted(path: str, link: str, owner: int) -> None:
    if not is_trusted(owner):
        raise ValueError(
            f"{path} leads through {link}, a symbolic link of {_user(owner)}, who may change where"
            " it leads. Give a path without that link"
        )


def is_trusted(owner: int) -> bool:
    """Return whether files of this user id cannot be a trap: it is this user or root."""
    return owner in (0, os.geteuid())


@contextmanager
def open_directory(path: str) -> Iterator[int]:
    """Open a directory, whose path `real_path` has returned, for `dir_fd`.

    Raises OSError if somebody has put a symbolic link into the path since then.
    """
    descriptor = os.open(os.sep, _PART)
    try:
        for part in filter(None, path.split(os.sep)):
            above = descriptor
            descriptor = os.open(part, _PART, dir_fd=above)
            os.close(above)
        yield descriptor
    finally:
        os.close(descriptor)


def _owner_of_link(path: str) -> int | None:
    """Return the user id of the owner of a symbolic link; None for anything else, or nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_uid if stat.S_ISLNK(status.st_mode) else None


def _user(owner: int) -> str:
    try:
        return f"the user {pwd.getpwuid(owner).pw_name}"
    except KeyError:
        return f"the user with id {owner}"
