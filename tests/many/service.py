"""A service for many requests at once: as slow as asked; it records what was created, and how many
came at once.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter

from support.service import Peer
from support.service import Service as ScriptedService
from support.wire import answer


class Service(ScriptedService):
    """Creates an asset as soon as its request arrives, and answers later."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(self._exchange)
        self.seconds = seconds  # each answer takes
        self.held: set[str] = set()  # names that get no answer until they are released
        self.statuses: dict[str, int] = {}  # answered instead of the asset, by name
        self.headers: tuple[str, ...] = ()  # additional lines in each answer
        self.created: Counter = Counter()  # names
        self.at_once = self.peak = 0
        self._numbers = itertools.count(1)
        self._released: set[str] = set()
        self._change = threading.Condition()

    def release(self, *names: str) -> None:
        """Give the answers that are held for these names."""
        with self._change:
            self._released.update(names)
            self._change.notify_all()

    def __exit__(self, *args) -> None:
        self.stopping.set()
        self.release()
        super().__exit__(*args)

    def _exchange(self, peer: Peer) -> bool:
        request = peer.request()
        if not request:
            return False
        body = json.loads(request.body)
        key = body.get("name") or request.path.rpartition("/")[2]
        status = self.statuses.get(key, 201)
        with self._change:
            self.created[key] += status < 300
            self.at_once += 1
            self.peak = max(self.peak, self.at_once)
        self.stopping.wait(self.seconds)
        with self._change:
            self._change.wait_for(
                lambda: key not in self.held - self._released or self.stopping.is_set()
            )
            self.at_once -= 1
        peer.say(answer(status, self._envelope(body) if status < 300 else None, *self.headers))
        return True

    def _envelope(self, body: dict) -> dict:
        described = dict.fromkeys(("description", "service", "platform", "region", "tenant"), "x")
        return {"id": f"vm-{next(self._numbers)}", **described, **body}
