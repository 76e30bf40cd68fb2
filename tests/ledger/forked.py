"""Starts the functions of processes.py, each in a process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST = 60.0  # seconds after which a process counts as hung


class Process:
    """A process that performs a function; a context that kills it at the end. `said`: its results
    so far.
    """

    def __init__(self, path: str, name: str, *arguments: object) -> None:
        self.said: list = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LONGEST)
        self._socket.connect(path)
        self._file = self._socket.makefile("rb", buffering=0)
        self._socket.sendall(json.dumps([name, arguments]).encode() + b"\n")
        self.pid = int(self._file.readline())

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()
        self._file.close()
        self._socket.close()

    def wait(self, count: int = 1) -> object:
        """Wait for `count` more results, and return the last one."""
        for _number in range(count):
            line = self._file.readline()
            assert line, "the process ended without a result"
            self.said.append(json.loads(line))
        return self.said[-1]

    def results(self) -> list:
        """Return all results, once the process has exited."""
        with suppress(ConnectionResetError):  # it was killed before it had read what it was asked
            self.said += map(json.loads, iter(self._file.readline, b""))
        return self.said

    def result(self) -> dict:
        """Return the only result; empty if the process was killed before."""
        (said,) = self.results() or [{}]
        return said

    def ends_within(self, seconds: float) -> bool:
        """Whether it says something or ends within this time."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def kill(self) -> None:
        """Kill the process, and wait until it is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.results()


@contextmanager
def forking(*prefix: str) -> Iterator[Callable[..., Process]]:
    """Return what starts a process, given the name of a function and its arguments; `prefix`: of
    its command line.
    """
    with tempfile.TemporaryDirectory(prefix="forking-") as directory:
        path = f"{directory}/socket"
        line = [*prefix, sys.executable, str(Path(__file__).with_name("processes.py")), path]
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            yield lambda *what: Process(path, *what)
