# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variable `fleet_only` of the role: a part of its lists, such as five machines of 500."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from ...module_utils._errors import InvalidInput, listing
from ...module_utils._secrets import printable
from .action import Action

_ONLY = "fleet_only"
_KEYS = {"fleet_virtual_machines": "name", "fleet_application_roles": "id"}


class Only:
    """The items that `fleet_only` selects; all if it is not set."""

    def __init__(self, action: Action) -> None:
        """Raise InvalidInput for a value that is not a list of names, or that matches nothing."""
        self._key = action.spec.key
        self._globs = action.list_variable(_ONLY, _ONLY) if action.spec.names else []
        self.left_out: list[str] = []
        if not self._globs:
            return
        known = []
        for name, key in _KEYS.items():
            known += [_name_of(item, key) for item in action.variable(name) or ()]
        for glob in self._globs:
            if not any(fnmatchcase(name, glob) for name in known):
                raise InvalidInput(_ONLY, f"{printable(glob)} is in neither list")

    def selected(self, items: list[Any]) -> list[Any]:
        """Return the selected items, and the invalid ones; note the names of the others."""
        if not self._globs:
            return items
        selected = []
        for item in items:
            name = _name_of(item, self._key)
            if not name or any(fnmatchcase(name, glob) for glob in self._globs):
                selected.append(item)
            else:
                self.left_out.append(name)
        return selected

    def without_left_out(self, names: list[str] | None) -> list[str] | None:
        """Return recorded names without those that are listed and left out."""
        left_out = set(self.left_out)
        return names and [name for name in names if name not in left_out]

    def lines(self) -> list[str]:
        """Return the line about the items that are left out, [] if all are selected."""
        if not self.left_out:
            return []
        only = printable(listing(self._globs))
        return [f"{len(self.left_out):,} more of the list are left out ({_ONLY}: {only})"]


def _name_of(item: Any, key: str) -> str:
    return str(item.get(key) or "") if isinstance(item, dict) else ""
