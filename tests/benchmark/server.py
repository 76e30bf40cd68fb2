"""A service that costs next to nothing, so that the client dominates the measurement; it also
counts token requests.

python tests/benchmark/server.py [SECONDS [FILE]]   prints its base URL, then answers, each time after
SECONDS, until its standard input closes; with TLS if FILE has a key and its certificates
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import ssl
import sys

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
WORK = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
TOKEN = b'{"access_token": "benchmark", "token_type": "Bearer", "expires_in": 3600}'


class Service(asyncio.Protocol):
    """One connection; requests are read by Content-Length."""

    numbers = itertools.count(1)
    tokens = 0

    def connection_made(self, transport) -> None:
        """Start with an empty buffer."""
        self.transport, self.received = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, rest = self.received.split(b"\r\n\r\n", 1)
            length = int(LENGTH.findall(head)[0]) if LENGTH.search(head) else 0
            if len(rest) < length:
                return
            body, self.received = rest[:length], rest[length:]
            answer = self.answer(head.split(b" ", 2)[1], body)
            self.say(HEAD % len(answer) + answer)

    def say(self, answer: bytes) -> None:
        """Send an answer when it is due."""
        if WORK:
            asyncio.get_running_loop().call_later(WORK, self.transport.write, answer)
        else:
            self.transport.write(answer)

    def answer(self, path: bytes, body: bytes) -> bytes:
        """Return a token, the token count, or the envelope of what was sent."""
        if path == b"/token":
            Service.tokens += 1
            return TOKEN
        if path == b"/tokens":
            return b"%d" % Service.tokens
        asset = {
            "id": f"vm-{next(self.numbers)}",
            "description": None,
            "service": "compute",
            "platform": "p",
            "region": "r",
            "tenant": "t",
            **json.loads(body),
        }
        return json.dumps(asset).encode("ascii")


async def serve() -> None:
    """Serve until standard input closes."""
    loop = asyncio.get_running_loop()
    context = None
    if len(sys.argv) > 2:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(sys.argv[2])
    server = await loop.create_server(Service, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    print(f"http{'s' if context else ''}://127.0.0.1:{port}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
