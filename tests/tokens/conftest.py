"""A service with its token endpoint, and a task that gets its token there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from emulator.messages import Request
from emulator.server import Running, start
from support import CREATE, LEAST, run_exactly

CLIENT = {"client_id": "web", "client_secret": "s3cret-of-web"}


class Conversation:
    """What the emulator received, in order of arrival."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def statuses(self) -> list[tuple[str, int | None]]:
        """Each request: its operation, and the status of its answer."""
        return [(entry.operation, entry.status) for entry in self._running.api.conversation]

    def requests(self, operation: str) -> list[Request]:
        """The requests of one operation."""
        return [
            entry.request
            for entry in self._running.api.conversation
            if entry.operation == operation
        ]


@pytest.fixture
def emulator() -> Iterator[Running]:
    """The running emulator, configured for a single client."""
    with start(roles=["role-0001"], token="granted-token", **CLIENT) as running:
        yield running


@pytest.fixture
def conversation(emulator: Running) -> Conversation:
    """What the emulator received."""
    return Conversation(emulator)


@pytest.fixture
def task(emulator: Running) -> Callable[..., dict]:
    """Run a task that has no token yet; an option that is None is left out."""

    def run(resource: str = CREATE, check: bool = False, **options: object) -> dict:
        given = {
            "base_url": emulator.url,
            "auth_url": f"{emulator.url}/oauth/token",
            "retry_max_delay": 0,
            **CLIENT,
            **LEAST[resource],
            **options,
        }
        return run_exactly(
            resource, {name: value for name, value in given.items() if value is not None}, check
        )

    return run
