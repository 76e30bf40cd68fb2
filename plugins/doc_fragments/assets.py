# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the options that describe an asset: for one asset, and for the items of a
list.
"""

from __future__ import annotations

import re
import textwrap


def _of_items(option: str, documented: str) -> str:
    """Return the documentation of the options of one asset as that of the items of a list.

    O(ledger) is not an option of an item.
    """
    inside = re.sub(r"O\((?!ledger)", f"O({option}[].", documented.partition("options:\n")[2])
    return f"options:\n  {option}:\n    suboptions:\n{textwrap.indent(inside, '    ')}"


class ModuleDocFragment:
    """C(infrastructure.services.assets.virtual_machine) and others; those for lists follow below."""

    VIRTUAL_MACHINE = r"""
options:
  name:
    description:
      - Name of the virtual machine, of 1 to 255 characters.
      - A new machine needs a name in Unicode form NFC, without blanks at its ends and characters that cannot be seen.
    type: str
    required: true
  id:
    description:
      - The id of a machine that exists. The task needs O(ledger), records the machine there with the given values, and
        sends nothing. If the machine is in doubt, this settles it.
      - An id other than the recorded one, or of another name, is refused.
    type: str
  attributes:
    description:
      - Attributes of the virtual machine. What is not given, or null, is not sent.
      - By their names, the service fills O(attributes.bios_serial_number), O(attributes.cdc_security),
        O(attributes.creation_date), O(attributes.global_status), O(attributes.last_reboot_date),
        O(attributes.memory_used_percent), O(attributes.partitions[].free) and O(attributes.status). You set the others.
      - The service specifies neither most units nor the values that strings may have.
    type: dict
    default: {}
    suboptions:
      bios_serial_number:
        description: Serial number of the BIOS.
        type: str
      cdc_security:
        description: State of the security agent.
        type: dict
        suboptions:
          anti_tamper:
            description: Anti-tamper setting of the agent.
            type: str
          connectivity:
            description: Connectivity of the agent.
            type: str
          customer_id:
            description: Identifier of the customer.
            type: str
          s1_version:
            description: Version of the agent.
            type: str
          uuid:
            description: Identifier of the agent.
            type: str
      cmdb_application_service:
        description: Application service in the CMDB.
        type: str
      cmdb_management_group:
        description: Management group in the CMDB.
        type: str
      cpu:
        description: Number of CPUs; the unit is not specified.
        type: float
      creation_date:
        description:
          - When the machine was created, ISO 8601; without a time zone it is UTC. Fractions of a second are dropped.
        type: str
      datacenter:
        description: Data center.
        type: str
      global_status:
        description: Overall status.
        type: dict
        suboptions:
          label:
            description: The status in words.
            type: str
          status:
            description: The status as a number; what it means is not specified.
            type: float
      instance:
        description: Instance.
        type: str
      ip:
        description: IP address.
        type: str
      last_reboot_date:
        description: When the machine was last booted, in the form of O(attributes.creation_date).
        type: str
      memory_used_percent:
        description: Memory in use, in percent.
        type: float
      name:
        description: Name of the machine within its attributes.
        type: str
      operating_system:
        description: Operating system.
        type: str
      partitions:
        description: Partitions of its disks.
        type: list
        elements: dict
        suboptions:
          capacity:
            description: Capacity; the unit is not specified.
            type: float
          free:
            description: Free space; the unit is not specified.
            type: float
          path:
            description: Where it is mounted.
            type: str
      puppet_classes:
        description: Puppet classes.
        type: list
        elements: str
      status:
        description: Status; the values are not specified.
        type: str
      subnet:
        description: The subnet of the machine.
        type: dict
        suboptions:
          dns:
            description: Name server.
            type: str
          gateway:
            description: Gateway.
            type: str
          mask:
            description: Mask.
            type: str
          network:
            description: Network.
            type: str
      team:
        description: Team.
        type: str
      vm_ram:
        description: Memory; the unit is not specified.
        type: float
      volumes:
        description: Volumes.
        type: list
        elements: dict
        suboptions:
          name:
            description: Name of the volume.
            type: str
          size_gb:
            description: Size in gigabytes.
            type: float
  extra_attributes:
    description:
      - Attributes that O(attributes) does not have. The task sends both together.
    type: dict
    default: {}
"""

    ON_DIFFERENCE = r"""
options:
  on_difference:
    description:
      - What to do when O(ledger) has the virtual machine with other values than given here. No operation of the service
        updates a virtual machine, so nothing is sent.
      - V(fail) names the fields and both values in an error, and the others of a list are created all the same. V(warn)
        names them in a warning.
      - A field that was not sent at the creation is a warning, once for a list. Of an adopted machine only the recorded
        fields are compared.
    type: str
    choices:
      - warn
      - fail
    default: fail
"""

    APPLICATION_ROLE = r"""
options:
  id:
    description:
      - Unique identifier of the role, sent as one percent-encoded path segment.
    type: str
    required: true
  name:
    description:
      - Name of the asset.
    type: str
  description:
    description:
      - Description of the asset.
    type: str
  service:
    description:
      - Service the asset belongs to.
    type: str
  platform:
    description:
      - Platform of the asset.
    type: str
  region:
    description:
      - Region of the asset.
    type: str
  tenant:
    description:
      - Tenant of the asset.
    type: str
  attributes:
    description:
      - Attributes of the role. What is not given, or null, is not sent.
      - By their names, the service fills O(attributes.effective_grants[].source) and
        O(attributes.password_last_rotated_at). You set the others.
      - The service does not specify the values that strings may have.
    type: dict
    suboptions:
      cluster_id:
        description: Identifier of the cluster the role belongs to, separated by slashes like a path.
        type: str
      effective_grants:
        description: Grants in effect for the role.
        type: list
        elements: dict
        suboptions:
          permissions:
            description: Permissions.
            type: list
            elements: str
          resource_kind:
            description: Kind of the resource.
            type: str
          resource_name:
            description: Name of the resource.
            type: str
          source:
            description: Origin of the grant.
            type: str
      login:
        description: Whether the role can log in.
        type: bool
      name:
        description: Role name.
        type: str
      password_last_rotated_at:
        description:
          - When the password was last rotated, ISO 8601; without a time zone it is UTC.
            Fractions of a second are dropped.
        type: str
      password_location:
        description: Where the password is kept; there is no field for the password itself.
        type: str
  extra_attributes:
    description:
      - Attributes that O(attributes) does not have. The task sends both together.
    type: dict
  body:
    description:
      - The whole body of the request, sent verbatim, nulls included. It excludes the options for single fields.
    type: dict
  current:
    description:
      - The current asset, as far as known, for example the C(asset) of an earlier task. If not given, the asset
        recorded in O(ledger) is used.
      - When it already has all that would be sent, nothing is sent.
      - The asset of another role, judged by its C(id), is refused.
    type: dict
  send:
    description:
      - V(given) sends only the given fields.
      - V(complete) sends the asset that is known from O(current) or O(ledger), with the given fields merged into it.
        The result is then the same whether the service replaces the role or merges into it. It is refused when no asset
        is known, or when it contains a placeholder for a secret.
    type: str
    choices:
      - given
      - complete
    default: given
"""

    VIRTUAL_MACHINES: str
    APPLICATION_ROLES: str


# Not in the class: the sanity tests expect only texts there.
ModuleDocFragment.VIRTUAL_MACHINES = _of_items(
    "virtual_machines", ModuleDocFragment.VIRTUAL_MACHINE
)
ModuleDocFragment.APPLICATION_ROLES = _of_items(
    "application_roles", ModuleDocFragment.APPLICATION_ROLE
)
