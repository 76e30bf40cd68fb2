# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records which libraries a worker has imported by the time a template is evaluated."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: imported
short_description: record what is imported
description: Writes a line to the file named by the variable IMPORTED_FILE, and returns its label.
author: The infrastructure.services contributors (!UNKNOWN)
options:
  _terms:
    description: A label, then the names of modules.
    type: list
    elements: str
"""


class LookupModule(LookupBase):
    """Looks into sys.modules."""

    def run(self, terms, variables=None, **kwargs):
        """Record which of the modules are loaded."""
        label, *names = terms
        with Path(os.environ["IMPORTED_FILE"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps([label, [name for name in names if name in sys.modules]]) + "\n")
        return [label]
