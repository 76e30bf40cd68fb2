# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The place where tasks run in tests."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils._call.place import Place
from ansible_collections.infrastructure.services.plugins.module_utils._http.transport import (
    Transport,
)


class PlaceOfTests(Place):
    """A place whose parts are functions."""

    def __init__(self, connect=Transport, watch=str, progress=lambda *numbers: None) -> None:
        super().__init__()
        self._connect, self._watch, self._progress = connect, watch, progress

    def open_transport(self, settings):
        return self._connect(settings)

    def why_to_stop(self):
        return self._watch()

    def show_progress(self, status):
        self._progress(*status)
