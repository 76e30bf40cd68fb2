# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds the lock of an asset, as a task that works on it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hold(ledger, key) -> Iterator[None]:
    """Hold a key of a ledger; others wait for it."""
    ledger.lock(key, wait=True)
    try:
        yield
    finally:
        ledger.release(key)
