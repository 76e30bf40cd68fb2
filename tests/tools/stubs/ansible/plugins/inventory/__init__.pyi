# SPDX-License-Identifier: GPL-3.0-or-later
from collections.abc import Mapping, MutableMapping
from typing import Any

from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins import AnsiblePlugin
from ansible.template import Templar
from ansible.utils.display import Display

class BaseInventoryPlugin(AnsiblePlugin):
    display: Display
    templar: Templar

    def verify_file(self, path: str) -> bool: ...
    def parse(
        self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True
    ) -> None: ...
    def _read_config_data(self, path: str) -> Mapping[str, Any]: ...

class Cacheable:
    _cache: MutableMapping[str, Any]

    def get_cache_key(self, path: str) -> str: ...

class Constructable:
    def _set_composite_vars(
        self, compose: object, variables: Mapping[str, object], host: str, strict: bool
    ) -> None: ...
    def _add_host_to_composed_groups(
        self, groups: object, variables: Mapping[str, object], host: str, strict: bool
    ) -> None: ...
    def _add_host_to_keyed_groups(
        self, keys: object, variables: Mapping[str, object], host: str, strict: bool
    ) -> None: ...
