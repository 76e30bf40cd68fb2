# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that all Ansible collections share, by antsibull-nox; antsibull-nox.toml configures
them.

`.venv/bin/nox` runs all of them, `.venv/bin/nox --list` names them. `make test` is what a
contributor runs.
"""

# /// script
# dependencies = ["nox", "antsibull-nox"]
# ///

from __future__ import annotations

import antsibull_nox

antsibull_nox.load_antsibull_nox_toml()
