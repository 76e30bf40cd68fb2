"""The emulator for its own tests: its pure core, called directly, and a running one, called over
sockets.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests
from emulator.api import Api
from emulator.messages import Request, Response
from emulator.server import Running, start
from emulator.settings import DEFAULT

MACHINES = "/api/v1/services/compute/virtual_machines"
ROLE = "/api/v1/services/cassandra/application_roles/role-1"
HEADERS = {"Authorization": "Bearer t", "Content-Type": "application/json"}
BODY = json.dumps({"name": "web01", "attributes": {"cpu": 4}}).encode()
NOW = 1_767_323_045  # 2026-01-02T03:04:05Z


class Core:
    """The pure core, with a role `role-1`, at a fixed moment."""

    def __init__(self) -> None:
        self.api = Api(roles=["role-1"], clock=lambda: NOW)

    def call(self, method: str, path: str, body: object = BODY, **headers: str | None) -> Response:
        """Send one request; keyword arguments replace headers, None leaves one out."""
        given = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        pairs = tuple((name, value) for name, value in given.items() if value is not None)
        return self.api.handle(Request(method, path, pairs, raw))

    def create(self, body: object = BODY, **headers: str | None) -> Response:
        """Create a virtual machine."""
        return self.call("POST", MACHINES, body, **headers)

    def update(self, body: object, path: str = ROLE, **headers: str | None) -> Response:
        """Update a role."""
        return self.call("PUT", path, body, **headers)

    def configure(self, **settings: object) -> None:
        """Set these switches, and reset all others to their defaults."""
        self.api.settings = DEFAULT.changed(settings)

    def stored(self, kind: str = "virtual_machines") -> list[dict]:
        """The content of the store."""
        return self.api.snapshot()[kind]


class Peer:
    """A running emulator as a client sees it."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.url = running.url

    def connect(self) -> socket.socket:
        """Open a connection."""
        url = urlsplit(self.url)
        return socket.create_connection((url.hostname, url.port), timeout=5)

    def converse(self, data: bytes) -> bytes:
        """Send the bytes on a new connection; return everything received until it is closed."""
        with self.connect() as client:
            client.sendall(self.addressed(data))
            return self.drain(client)

    def addressed(self, data: bytes) -> bytes:
        """Return the bytes with the emulator's own address in place of HERE."""
        return data.replace(b"HERE", urlsplit(self.url).netloc.encode())

    def drain(self, client: socket.socket) -> bytes:
        """Return everything received until the end of the stream."""
        received = b""
        while chunk := client.recv(65536):
            received += chunk
        return received

    def meet(self, **fault: object) -> None:
        """Make requests meet this fault."""
        answer = requests.post(f"{self.url}/_emulator/faults", json=fault, timeout=5)
        assert answer.status_code == 200, answer.text

    def conversation(self) -> list[dict]:
        """Return what was received."""
        return requests.get(f"{self.url}/_emulator/requests", timeout=5).json()

    def created(self) -> int:
        """Return the number of virtual machines."""
        return requests.get(f"{self.url}/_emulator/health", timeout=5).json()["virtual_machines"]

    def wait_for_request(self, processed: bool = False) -> dict:
        """Return the first request once it is recorded, or once it is processed."""
        deadline = time.monotonic() + 60
        while not (entries := self.conversation()) or (processed and entries[0]["status"] is None):
            assert time.monotonic() < deadline, "no request arrived"
            time.sleep(0.01)
        return entries[0]


@pytest.fixture(scope="module")
def shared_core() -> Core:
    """One core shared by all tests of a file."""
    return Core()


@pytest.fixture
def core(shared_core: Core) -> Core:
    """The core, reset to its initial state."""
    shared_core.api.reset()
    return shared_core


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """One running emulator shared by all tests of a file."""
    with start(roles=["role-1"]) as server:
        yield server


@pytest.fixture
def emulator(running: Running) -> Peer:
    """The running emulator, reset to its initial state."""
    running.api.reset()
    return Peer(running)


@pytest.fixture
def peer() -> type[Peer]:
    """For tests that start an emulator of their own."""
    return Peer
