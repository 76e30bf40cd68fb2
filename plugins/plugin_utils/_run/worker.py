# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker: the process that forked it, and its environment."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from typing import Iterator, Mapping

from ...module_utils._errors import InvalidInput, ServicesError

_WHY = (
    "a name must not be empty or contain =; neither it nor its value"
    " may contain NUL or a lone surrogate"
)


class Parent:
    """The process that forked this one, known before each fork: it may die right after it."""

    def __init__(self) -> None:
        self.pid = os.getppid()
        self._next = self.pid
        os.register_at_fork(before=self._before_fork, after_in_child=self._after_fork)

    def _before_fork(self) -> None:
        self._next = os.getpid()

    def _after_fork(self) -> None:
        self.pid = self._next


@cache
def parent() -> Parent:
    """Return the parent of this process and, once called, of those that it forks."""
    return Parent()


def is_orphan() -> bool:
    """Return whether ansible-playbook has died, so that nobody reads the result of this worker."""
    return os.getppid() != parent().pid


def require_parent() -> None:
    """Raise ServicesError in an orphan."""
    if is_orphan():
        raise ServicesError(
            "Nothing was sent: the run of Ansible that this task belongs to has ended."
        )


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set exactly these environment variables; raise InvalidInput for one that is invalid."""
    before = dict(os.environ)
    if before == variables:
        yield
        return
    try:
        _set_environment(variables)
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    for name, value in variables.items():
        try:
            os.environ[name] = value
        except (OSError, ValueError):
            raise InvalidInput(
                "environment", f"the variable {name!r} cannot be set: {_WHY}"
            ) from None
