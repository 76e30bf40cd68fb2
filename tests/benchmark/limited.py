# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A service with limits, to measure how a client copes with them; it counts its answers.

python tests/benchmark/limited.py SETTINGS   prints its base URL, then answers until its standard
input closes

SETTINGS is JSON: `seconds` per answer, `rate` (answers per second, 429 beyond), `capacity` (at
once, 503 beyond), `slow_above` (at once, proportionally slower beyond), `dies_after` (answers, 503
from then on). GET /counts returns the counts.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import re
import sys
import time
from collections import Counter

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SETTINGS = {"seconds": 0.0, "rate": None, "capacity": None, "slow_above": None, "dies_after": None}


class Service:
    """Answers according to its settings."""

    def __init__(self, settings: dict) -> None:
        self.settings = {**SETTINGS, **settings}
        self.counts: Counter = Counter()
        self.at_once = 0
        self.level, self.last = float(self.settings["rate"] or 0), time.monotonic()
        self.first = self.latest = 0.0
        self.numbers = itertools.count(1)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = LENGTH.findall(head)
                body = await reader.readexactly(int(length[0])) if length else b""
                status, text = await self.answer(head.split(b" ", 2)[1], body)
                writer.write(
                    b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                    % (status, len(text), text)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    async def answer(self, path: bytes, body: bytes) -> tuple[int, bytes]:
        """Return status and body."""
        if path == b"/counts":
            seconds = self.latest - self.first
            return 200, json.dumps(
                {**{str(k): v for k, v in self.counts.items()}, "seconds": seconds}
            ).encode()
        self.first = self.first or time.monotonic()
        self.at_once += 1
        status = self.judge()
        if status == 201:
            crowded = self.at_once / (self.settings["slow_above"] or math.inf)
            await asyncio.sleep(self.settings["seconds"] * max(1.0, crowded))
        self.at_once -= 1
        self.counts[status] += 1
        self.latest = time.monotonic()
        if status != 201:
            return status, b""
        return 201, json.dumps({"id": f"vm-{next(self.numbers)}", **json.loads(body)}).encode()

    def judge(self) -> int:
        """Return the status."""
        if (
            self.settings["dies_after"] is not None
            and self.counts[201] >= self.settings["dies_after"]
        ):
            return 503
        if self.settings["capacity"] and self.at_once > self.settings["capacity"]:
            return 503
        if self.settings["rate"]:
            now = time.monotonic()
            self.level = min(
                self.settings["rate"], self.level + (now - self.last) * self.settings["rate"]
            )
            self.last = now
            if self.level < 1:
                return 429
            self.level -= 1
        return 201


async def serve(settings: dict) -> None:
    """Serve until standard input closes."""
    server = await asyncio.start_server(Service(settings).talk, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))
