# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters for CSV files of assets; from_csv.yml and to_csv.yml document them."""

from __future__ import annotations

from typing import Callable

from ansible.errors import AnsibleFilterError
from jinja2 import Undefined

from ..module_utils._errors import InvalidInput
from ..module_utils._resources import RESOURCES
from ..module_utils._task.options import Option
from ..module_utils._task.validation import validated
from ..plugin_utils._csv.layout import Layout
from ..plugin_utils._csv.reading import read_csv
from ..plugin_utils._csv.writing import csv_of
from ..plugin_utils._run.ansible_core import untrusted

_READING: dict[str, Option] = {
    "entries": {"type": "bool", "default": False},
    "resource": {"type": "str", "choices": [*RESOURCES], "default": "compute_virtual_machine"},
    "delimiter": {"type": "str", "default": ""},
    "decimal": {"type": "str", "default": ""},
    "columns": {"type": "dict", "default": {}},
    "ignore": {"type": "list", "elements": "str", "default": []},
}


def from_csv(text: str, /, **given: object) -> object:
    """Return the items or entries in a CSV text, never to be templated."""
    # Jinja has a message of its own for that.
    if not isinstance(text, (str, Undefined)):
        raise AnsibleFilterError("from_csv: it needs the text of a CSV file, and was given no text")
    options, problems = validated(_READING, {}, given)
    if problems:
        raise AnsibleFilterError(f"from_csv: {'; '.join(problems)}")
    columns = {str(heading): str(name) for heading, name in options["columns"].items()}
    try:
        layout = Layout(options["delimiter"], options["decimal"], columns, options["ignore"])
        return untrusted(read_csv(text, options["entries"], options["resource"], layout))
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


def to_csv(entries: object, delimiter: str = ",") -> str:
    """Return entries of the ledger as CSV text."""
    if not isinstance(entries, (list, tuple)):
        raise AnsibleFilterError("to_csv: it needs a list of entries, as ledger_info returns them")
    try:
        return csv_of(entries, delimiter)
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


class FilterModule:
    """Names the filters."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filters by their names."""
        return {"from_csv": from_csv, "to_csv": to_csv}
