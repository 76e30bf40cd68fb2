# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's commands and the installed artifact, as in the integration tests."""

from __future__ import annotations

from support.fixtures import collections

__all__ = ["collections"]
