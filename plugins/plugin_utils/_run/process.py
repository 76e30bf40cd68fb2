# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker and the process that forked it."""

from __future__ import annotations

import os

from ...module_utils._errors import ServicesError

_fork = {"parent": os.getppid(), "forking": 0}
os.register_at_fork(  # asked before the fork: the parent may die right after it
    before=lambda: _fork.update(forking=os.getpid()), after_in_child=lambda: _fork.update(parent=_fork["forking"])
)


def is_orphan() -> bool:
    """Return whether ansible-playbook has died, so that nobody reads the result of this worker."""
    return os.getppid() != _fork["parent"]


def require_parent() -> None:
    """Raise ServicesError in an orphan."""
    if is_orphan():
        raise ServicesError("Nothing was sent: the run of Ansible that this task belongs to has ended.")


def exit_orphan() -> None:
    """Exit if this worker is an orphan: its result would fill a pipe that nobody reads, so it would never end."""
    if is_orphan():
        os._exit(1)
