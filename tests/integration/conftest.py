# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed artifact, the emulator inside it, and Ansible's commands."""

from __future__ import annotations

from support.fixtures import (
    ansible,
    ansible_in,
    ansible_once,
    collections,
    installed,
    running_service,
    service,
)

__all__ = [
    "ansible",
    "ansible_in",
    "ansible_once",
    "collections",
    "installed",
    "running_service",
    "service",
]
