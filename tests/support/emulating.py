"""The emulator of the installed collection in a process of its own, driven through its control
endpoints.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import requests


@dataclass
class Service:
    """The emulator, driven through its control endpoints."""

    url: str

    def reset(self) -> None:
        """Discard assets, conversation, faults and settings."""
        self._control("POST", "reset")

    def conversation(self) -> list[dict]:
        """The requests received since the last reset: method, path, headers, body, status, ..."""
        return self._control("GET", "requests").json()

    def bodies(self) -> list[dict]:
        """The JSON bodies of the conversation."""
        return [json.loads(request["body"]) for request in self.conversation()]

    def header(self, name: str) -> list[str | None]:
        """The value of that header in each request of the conversation."""
        return [
            {key.lower(): value for key, value in request["headers"]}.get(name.lower())
            for request in self.conversation()
        ]

    def fault(self, **fault) -> None:
        """Make the next requests fail; see extensions/emulator/README.md."""
        self._control("POST", "faults", fault)

    def settings(self, **settings) -> None:
        """Change how the emulator resolves what the interface leaves open."""
        self._control("PUT", "settings", settings)

    def seed(self, asset_id: str, **asset) -> None:
        """Store an asset."""
        self._control("PUT", f"assets/{asset_id}", asset)

    def _control(self, method: str, path: str, body: object = None) -> requests.Response:
        headers = {"Content-Type": "application/json"}
        answer = requests.request(
            method, f"{self.url}/_emulator/{path}", json=body, headers=headers, timeout=10
        )
        answer.raise_for_status()
        return answer


@contextlib.contextmanager
def emulating(installed: Path, directory: Path) -> Iterator[Service]:
    """Run the emulator; `installed`: the root of the collection, `directory`: where it writes its
    ready file.
    """
    ready = directory / "url"
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator", "--port", "0", "--ready-file", str(ready)],
        env={**os.environ, "PYTHONPATH": str(installed / "extensions")},
        stdout=subprocess.DEVNULL,  # where it listens stands in the file
    )
    try:
        deadline = time.monotonic() + 20
        while not ready.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        yield Service(ready.read_text().strip())
    finally:
        process.terminate()
        process.wait(10)
