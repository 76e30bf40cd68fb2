"""Another user of this machine: files that belong to one, and code that runs as one."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

OTHER = 65534  # nobody, on most systems
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root is needed to be two users")


@contextmanager
def directory_for_all(mode: int) -> Iterator[Path]:
    """Make a directory outside of those that only this user may enter."""
    with tempfile.TemporaryDirectory(prefix="for-all-") as directory:
        os.chmod(directory, mode)
        yield Path(directory)


@contextmanager
def repeated_by_another(act: Callable[[], object], seconds: float = 30.0) -> Iterator[None]:
    """Let another user do something again and again, ignoring what the system refuses, until the
    end of the context.
    """
    pid = os.fork()
    if not pid:
        with suppress(BaseException):
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                with suppress(OSError):
                    act()
        os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
