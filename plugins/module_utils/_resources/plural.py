# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules that do for a list of assets what the module of their resource does for one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .flow import Resource


@dataclass(frozen=True)
class Plural:
    """A module for a list of assets; its items have the options of the resource."""

    name: str  # the name of the module and of its fact
    resource: Resource
    option: str  # holds the list
    key: str  # the option that identifies an item
    shared: tuple[str, ...] = ()  # options of the resource that are given once, for all items

    @cached_property
    def item_options(self) -> dict[str, Any]:
        """Return the argument spec of one item."""
        own = {name: option for name, option in self.resource.options.items() if name not in self.shared}
        return {name: _with_own_default(option) for name, option in own.items()}

    @cached_property
    def options(self) -> dict[str, Any]:
        """Return the argument spec of this module's own options."""
        items = dict(
            self.plain_options[self.option], elements="dict", options=self.item_options, **self.resource.constraints
        )
        return {**self.plain_options, self.option: items}

    @cached_property
    def plain_options(self) -> dict[str, Any]:
        """Return the same without a spec for the items: `_list/items` validates them, wherever the module runs."""
        shared = {name: self.resource.options[name] for name in self.shared}
        return {self.option: dict(type="list", elements="raw", required=True), **shared}

    def without_items(self, params: dict) -> dict:
        """Return the options with the number of items instead of the items."""
        items = params.get(self.option)
        return dict(params, **{self.option: f"{len(items)} items"}) if isinstance(items, list) else params


def _with_own_default(option: dict) -> dict:
    """Return the option with a default of its own: ansible-core modifies a default that is a dict."""
    return dict(option, default={}) if option.get("default") == {} else option
