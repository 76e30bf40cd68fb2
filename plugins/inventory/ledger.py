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
  - A virtual machine whose name is no host name is left out with a warning. A host name has letters, digits, hyphens,
    points and underscores, and does not begin with a hyphen or a point. C(all), C(ungrouped) and the names of the
    controller, such as C(localhost), mean something else to Ansible.
  - The field C(attributes.ip) of the asset becomes C(ansible_host). A value that is neither an address nor a host name
    causes a warning, and is not used.
  - The configuration is a file whose name ends in C(ledger.yml) or C(ledger.yaml).
  - Each host has the variable C(virtual_machine), its asset as recorded.
version_added: 1.0.0
author:
  - The infrastructure.services contributors (@infrastructure-services)
extends_documentation_fragment:
  - constructed
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices:
      - infrastructure.services.ledger
  ledger:
    description:
      - Where the ledger is, an absolute path (an SQLite file) or a C(postgresql://) URL, which needs C(psycopg).
      - Leave it out to use the environment variable, which may hold a password. One of both is needed.
      - Ansible does not evaluate Jinja in this file.
      - A ledger that has no virtual machine causes a warning.
    type: str
    env:
      - name: INFRASTRUCTURE_SERVICES_LEDGER
"""

EXAMPLES = r"""
# production.ledger.yml: the virtual machines in a group for each team, and the large ones in a group of their own
plugin: infrastructure.services.ledger
# The environment variable INFRASTRUCTURE_SERVICES_LEDGER names the ledger.
keyed_groups:
  - key: virtual_machine.attributes.team
    prefix: team
groups:
  large: virtual_machine.attributes.cpu | default(0, true) >= 8
compose:
  ansible_user: "'deploy'"
"""

import re
from contextlib import closing
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable

from ..module_utils._errors import InvalidInput, ServicesError
from ..module_utils._resources.names import require_name
from ..module_utils._secrets import printable
from ..module_utils._task.options import LEDGER_VARIABLE
from ..module_utils._values import ABSENT, value_at
from ..plugin_utils._ledger.entries import DONE
from ..plugin_utils._ledger.ledger import Ledger
from ..plugin_utils._ledger.location import open_database
from ..plugin_utils._ledger.seen import Seen
from ..plugin_utils._run.ansible_core import inventory_data, run_id, setting

_RESOURCE = "compute_virtual_machine"
_VARIABLE = "virtual_machine"  # not the name of a fact, which could replace it
# Neither is an option of ssh, a path, a pattern of hosts or a template. A name may have letters of
# any script.
_NAME = re.compile(r"\w[\w.-]*")
_ADDRESS = re.compile(rf"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|{_NAME.pattern}", re.ASCII)
_NO_HOSTS = ("all", "ungrouped")


def _is_host(name: str) -> bool:
    """Return whether the name of a machine can be that of a host of Ansible."""
    try:
        require_name("name", name, is_new=True)
    except InvalidInput:
        return False
    return bool(_NAME.fullmatch(name)) and name not in (*_NO_HOSTS, *setting("LOCALHOST"))


class InventoryModule(BaseInventoryPlugin, Constructable):
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
        self._read_config_data(path)
        try:
            machines = self._machines()
        except ServicesError as error:
            raise AnsibleParserError(f"{path}: {error.msg}") from error
        for name, asset in machines:
            if not _is_host(name):
                self.display.warning(
                    printable(f"{path}: {name} is left out, because it is not the name of a host")
                )
                continue
            self._add_host(inventory, name, asset)

    def _machines(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the name and the envelope of every recorded virtual machine."""
        location = self.get_option("ledger")
        if not location:
            raise InvalidInput(
                "ledger", f"is missing: set it here, or the environment variable {LEDGER_VARIABLE}"
            )
        if "{{" in location:
            raise InvalidInput(
                "ledger",
                f"{printable(location)} is a template, and Ansible does not evaluate Jinja in the"
                f" file of an inventory. Leave it out, and set {LEDGER_VARIABLE}",
            )
        database = open_database(location)
        with closing(Ledger(database, Seen(setting("ANSIBLE_HOME"), run_id()))) as ledger:
            found = ledger.entries("resource = ? AND state = ?", (_RESOURCE, DONE))
            machines = [
                (inventory_data(key.name), inventory_data(entry.asset)) for key, entry in found
            ]
            if not machines:
                self.display.warning(f"no virtual machine is recorded in {ledger.where}")
        return machines

    def _add_host(self, inventory: InventoryData, name: str, asset: dict[str, Any]) -> None:
        """Add a host with its variables, and those that the constructed options derive from them.

        Variables that another source has already given this host are kept.
        """
        variables: dict[str, object] = {_VARIABLE: asset}
        address = value_at(asset, ("attributes", "ip"))
        if isinstance(address, str) and _ADDRESS.fullmatch(address):
            variables["ansible_host"] = address
        elif address not in (ABSENT, None, ""):  # ssh could take it for something else
            self.display.warning(
                f"{name} gets no ansible_host: its attributes.ip is neither an address nor a host"
                " name"
            )
        inventory.add_host(name)
        host = inventory.hosts[name].vars  # its method searches each value for templates to trust
        given = dict(host)
        host.update(variables)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, name, strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict)
        host.update(given)
