"""Importing this makes the checkout importable as the collection, and the emulator as a package."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def _collections() -> str:
    """Return a directory that contains the checkout as ansible_collections/infrastructure/services."""
    root = Path(tempfile.mkdtemp(prefix="collections-"))
    atexit.register(_remove, root, os.getpid())
    (root / "ansible_collections" / "infrastructure").mkdir(parents=True)
    (root / "ansible_collections" / "infrastructure" / "services").symlink_to(
        CHECKOUT, target_is_directory=True
    )
    return str(root)


def _remove(root: Path, owner: int) -> None:
    """Remove the directory when the process that made it ends, not when one that it has forked
    does.
    """
    if os.getpid() == owner:
        shutil.rmtree(root, ignore_errors=True)


sys.path[:0] = [_collections(), str(CHECKOUT / "extensions"), str(CHECKOUT / "tests")]
