# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters for CSV files of assets; from_csv.yml and to_csv.yml document them."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ..module_utils._errors import InvalidInput
from ..plugin_utils._run.core import untrusted
from ..plugin_utils._screen.csv_files import read, written


def from_csv(text, entries=False, resource="compute_virtual_machine", delimiter=""):
    """Return the items or entries in a CSV text, never to be templated."""
    try:
        return untrusted(read(text, entries, resource, delimiter))
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


def to_csv(entries):
    """Return entries of the ledger as CSV text."""
    if not isinstance(entries, (list, tuple)):
        raise AnsibleFilterError("to_csv: it needs a list of entries, as ledger_info returns them")
    try:
        return written(entries)
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


class FilterModule:
    """Names the filters."""

    def filters(self):
        return {"from_csv": from_csv, "to_csv": to_csv}
