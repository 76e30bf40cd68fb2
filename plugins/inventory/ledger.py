# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists the virtual machines recorded in a ledger as hosts; the service itself cannot list them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
name: ledger
short_description: Virtual machines of the ledger as hosts
description:
  - Lists every virtual machine that M(infrastructure.services.compute_virtual_machine) created with the option
    O(infrastructure.services.compute_virtual_machine#module:ledger), or that
    M(infrastructure.services.ledger_entry) adopted. Entries that are in doubt are left out.
  - A virtual machine whose name begins with a hyphen or a blank, or has a control character, is left out with a
    warning, because ssh takes such a name for an option.
  - The configuration is a file whose name ends in C(ledger.yml) or C(ledger.yaml).
  - Each host has the variable C(compute_virtual_machine), its asset as recorded, which equals the fact returned by
    the task that created it.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - constructed
  - inventory_cache
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices:
      - infrastructure.services.ledger
  ledger:
    description:
      - Where the ledger is, a path (an SQLite file) or a C(postgresql://) URL, which needs C(psycopg).
      - It may be a template, which has no variables but may use lookups. Leave it out to use the environment variable.
      - A relative path is resolved against the directory of this file, or the working directory if it comes from the
        environment.
      - A ledger that does not exist, or that has no matching host, causes a warning.
    type: str
    required: true
    env:
      - name: INFRASTRUCTURE_SERVICES_LEDGER
  base_url:
    description:
      - List only the virtual machines of this service.
      - Without it, if two services have a virtual machine of the same name, only one is listed, with a warning.
      - A host that another inventory source lists, too, has the variables of both; those of the other source win.
    type: str
  address:
    description:
      - The field of the asset that becomes C(ansible_host), as keys joined by dots. A host without a value there gets
        no C(ansible_host).
      - A value that is neither an address nor a host name causes a warning, and is not used either.
    type: str
    default: attributes.ip
"""

EXAMPLES = r"""
# production.ledger.yml: the virtual machines in a group for each team, and the large ones in a group of their own
plugin: infrastructure.services.ledger
ledger: fleet.db  # or postgresql://ledger@db.example.com/ledger, which several controllers share
keyed_groups:
  - key: compute_virtual_machine.attributes.team
    prefix: team
groups:
  large: compute_virtual_machine.attributes.cpu | default(0, true) >= 8
compose:
  ansible_user: "'deploy'"
"""

import ipaddress
import os
import re
from contextlib import closing
from typing import Any, Dict, Tuple

from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ..module_utils._errors import ServicesError
from ..module_utils._fields import ABSENT, value_at
from ..module_utils._http.urls import recorded_url
from ..module_utils._secrets import printable
from ..plugin_utils._ledger.entries import DONE
from ..plugin_utils._ledger.location import no_ledger_yet, open_ledger, resolved
from ..plugin_utils._run.ansible_core import host_variables, inventory_data, taken_names

Machine = Tuple[str, str, Dict[str, Any]]  # base_url, name and envelope
RESOURCE = "compute_virtual_machine"
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """The ledger as an inventory."""

    NAME = "infrastructure.services.ledger"

    def verify_file(self, path: str) -> bool:
        """Return whether this is one of our configuration files, by its name."""
        return super().verify_file(path) and path.endswith(("ledger.yml", "ledger.yaml"))

    def parse(
        self, inventory: InventoryData, loader: DataLoader, path: str, cache: bool = True
    ) -> None:
        """Add the hosts to the inventory; raise AnsibleParserError."""
        super().parse(inventory, loader, path, cache)
        config = self._read_config_data(path)
        try:
            machines = self._machines(self._location(config.get("ledger"), path), path, cache)
        except ServicesError as error:
            raise AnsibleParserError(error.msg) from error
        if not machines:
            self.display.warning(f"{path}: the ledger has no virtual machine that matches")
        taken = taken_names(inventory)
        for base_url, name, asset in machines:
            problem = problem_of_name(name)
            if name in taken:
                problem = "another host or group has this name"
            if problem:
                left_out = f"{path}: {name} of {base_url} is left out: {problem}"
                self.display.warning(printable(left_out))
                continue
            taken.add(name)
            self._add_host(inventory, inventory_data(name), inventory_data(asset))

    def _location(self, configured: Any, path: str) -> str:
        """Return where the ledger is; raise InvalidInput.

        `configured`: the option in the file, where it may be a template.
        """
        given = self.get_option("ledger")
        if configured and self.templar.is_template(configured):
            given = self.templar.template(configured)
        return resolved(str(given or ""), os.path.dirname(os.path.abspath(path)), not configured)

    def _machines(self, location: str, path: str, cache: bool) -> list[Machine]:
        """Return the virtual machines of the service, from the cache if it is enabled."""
        service = self.get_option("base_url")
        if service:
            service = recorded_url("base_url", service)
        if not self.get_option("cache"):
            found = self._read_machines(location)
        else:
            key = self.get_cache_key(f"{path} {location}")
            if not cache or key not in self._cache:
                self._cache[key] = self._read_machines(location)
            found = self._cache[key]
        return [machine for machine in found if not service or service == machine[0]]

    def _read_machines(self, location: str) -> list[Machine]:
        """Return every recorded virtual machine."""
        with closing(open_ledger(location, read_only=True)) as ledger:
            if ledger.is_new:
                self.display.warning(no_ledger_yet(ledger))
            is_machine = {"resource = ?": (RESOURCE,), "state = ?": (DONE,)}
            found = ledger.entries(is_machine)
        return [(key.base_url, key.name, entry.asset) for key, entry in found]

    def _add_host(self, inventory: InventoryData, name: str, asset: dict[str, Any]) -> None:
        """Add a host with its variables, and those that the constructed options derive from them.

        Variables that another source has already given this host are kept.
        """
        variables = {RESOURCE: asset, **self._address(name, asset)}
        host = host_variables(inventory, name)
        given = dict(host)
        host.update(variables)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, name, strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict)
        host.update(given)

    def _address(self, name: str, asset: dict[str, Any]) -> dict[str, object]:
        """Return `ansible_host`, nothing for a value that ssh could take for something else."""
        option = self.get_option("address")
        address = value_at(asset, option.split("."))
        if is_address(address):
            return {"ansible_host": address}
        if address not in (ABSENT, None, ""):
            self.display.warning(
                f"{name} gets no ansible_host: its {option} is neither an address nor a host name"
            )
        return {}


def problem_of_name(name: str) -> str:
    """Return why a name cannot be that of a host, '' if it can: ssh gets it as an argument."""
    if name.startswith("-") or name != name.lstrip():
        return "its name begins with a hyphen or a blank, and ssh would take it for an option"
    return "" if name.isprintable() else "its name has a line break or another control character"


def is_address(value: object) -> bool:
    """Return whether the value is an address or a host name (RFC 1123, and underscores)."""
    if not isinstance(value, str):
        return False
    try:
        return "%" not in value and bool(ipaddress.ip_address(value))
    except ValueError:
        return len(value) <= 253 and bool(_HOST_NAME.fullmatch(value))
