# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the run of Ansible that a worker belongs to is still alive."""

from __future__ import annotations

import os

from ...module_utils._errors import ServicesError

_fork = {"parent": os.getppid()}
os.register_at_fork(after_in_child=lambda: _fork.update(parent=os.getppid()))


def is_orphan() -> bool:
    """Return whether ansible-playbook has died, so that nobody reads the result of this worker."""
    return os.getppid() != _fork["parent"]


def require_parent() -> None:
    """Raise ServicesError in an orphan."""
    if is_orphan():
        raise ServicesError("Nothing was sent: the run of Ansible that this task belongs to has ended.")
