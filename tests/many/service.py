# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A service for many requests at once, in a thread of the tests: as slow as asked; it records who came when, and how
many at once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import threading
from collections import Counter

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_FORM = "HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n"


class Service:
    """Serves until it is closed; an asset is created as soon as its request arrives, and the answer sent later."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds  # each answer takes
        self.slow: dict[str, float] = {}  # the same, by name
        self.statuses: dict[str, int] = {}  # answered instead of the asset, by name
        self.headers = ""  # additional lines in each answer
        self.created: Counter = Counter()  # names
        self.at_once = self.peak = 0
        self._numbers = itertools.count(1)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._ready.wait(10)

    def close(self) -> None:
        """Stop answering."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._end.wait()
        server.close()
        talks = asyncio.all_tasks() - {asyncio.current_task()}
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = json.loads(await reader.readexactly(int(_LENGTH.findall(head)[0])))
                status, answer = await self._answer(head.split(b" ", 2)[1].decode(), body)
                text = json.dumps(answer).encode() if answer else b""
                writer.write(_FORM.format(status, self.headers, len(text)).encode() + text)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _answer(self, path: str, body: dict) -> tuple[int, dict | None]:
        key = body.get("name") or path.rsplit("/", 1)[1]
        status = self.statuses.get(key, 201)
        self.created[key] += status < 300
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await asyncio.sleep(self.slow.get(key, self.seconds))
        self.at_once -= 1
        if status >= 300:
            return status, None
        envelope = dict.fromkeys(("description", "service", "platform", "region", "tenant"), "x")
        return status, {"id": f"vm-{next(self._numbers)}", **envelope, **body}
