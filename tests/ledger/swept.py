# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many runs had a call that failed, or at which the process was killed, as `make stress` counted it."""

from __future__ import annotations

SWEPT: dict[str, dict[str, int]] = {
}
