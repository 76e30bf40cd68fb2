# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters for CSV files of assets; from_csv.yml and to_csv.yml document them."""

from __future__ import annotations

from typing import Callable

from ansible.errors import AnsibleFilterError

from ..module_utils._errors import InvalidInput
from ..plugin_utils._csv.reading import read_csv
from ..plugin_utils._csv.writing import csv_of
from ..plugin_utils._run.ansible_core import untrusted


def from_csv(
    text: str, entries: bool = False, resource: str = "compute_virtual_machine", delimiter: str = ""
) -> object:
    """Return the items or entries in a CSV text, never to be templated."""
    try:
        return untrusted(read_csv(text, entries, resource, delimiter))
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


def to_csv(entries: object) -> str:
    """Return entries of the ledger as CSV text."""
    if not isinstance(entries, (list, tuple)):
        raise AnsibleFilterError("to_csv: it needs a list of entries, as ledger_info returns them")
    try:
        return csv_of(entries)
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


class FilterModule:
    """Names the filters."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by their names."""
        return {"from_csv": from_csv, "to_csv": to_csv}
