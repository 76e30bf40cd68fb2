# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets the environment variables of one task in the worker itself, without a process of its own."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator, Mapping

from ...module_utils._errors import InvalidInput

_WHY = "a name must not be empty or contain =; neither it nor its value may contain NUL or a lone surrogate"


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set exactly these environment variables within the context; raise InvalidInput for one that cannot be set."""
    before = dict(os.environ)
    if before == variables:
        yield
        return
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    for name, value in variables.items():
        try:
            os.environ[name] = value
        except (OSError, ValueError):
            raise InvalidInput("environment", f"the variable {name!r} cannot be set: {_WHY}") from None
