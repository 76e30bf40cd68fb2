# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter from_csv; from_csv.yml documents it."""

from __future__ import annotations

from typing import Callable

from ansible.errors import AnsibleFilterError

from ..module_utils._errors import InvalidInput
from ..plugin_utils._csv import read_machines
from ..plugin_utils._run.ansible_core import untrusted


def from_csv(text: str, /, **given: object) -> object:
    """Return the machines that a CSV text lists, never to be templated."""
    try:
        return untrusted(read_machines({**given, "text": text}))
    except InvalidInput as error:
        raise AnsibleFilterError(error.msg) from None


class FilterModule:
    """Names the filter."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return the filter by its name."""
        return {"from_csv": from_csv}
