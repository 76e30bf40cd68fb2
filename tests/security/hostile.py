# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers that a hostile or broken service might give, and a server that gives them one after
another.
"""

from __future__ import annotations

import gzip
import json
from typing import NamedTuple

from hypothesis import strategies as st
from support.service import Peer, Service

FIN, RESET, KEEP, HOLD = "fin", "reset", "keep", "hold"


class Said(NamedTuple):
    """What is sent for one request, and what happens to the connection then."""

    data: bytes
    ending: str


class Server(Service):
    """Gives the current `answer` to each request."""

    def __init__(self) -> None:
        super().__init__(self._exchange)
        self.answer = Said(b"", FIN)

    def _exchange(self, peer: Peer) -> bool:
        if not peer.request():
            return False
        data, ending = self.answer
        peer.say(data)
        {FIN: peer.fin, RESET: peer.rst, HOLD: peer.hold}.get(ending, bool)()
        return ending == KEEP


ENVELOPE = {"id": "1", "name": "web01", "attributes": {"cpu": 4, "ip": "10.0.0.1"}, "region": None}
TEXTS = st.text(max_size=20)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
ODD_JSON = [
    *(
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b'{"id": 1}{}',
        b'{"id": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": 1e999}',
    ),
    *(
        b"\xef\xbb\xbf{}",
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        b"<html></html>",
        b'{"a":' * 5000,
    ),
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"failed": true, "changed": false, "ansible_facts": {"a": 1}, "invocation": 1, "warnings": 7, "exception": "x"}',
]
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)
BODIES = st.one_of(
    st.just(json.dumps(ENVELOPE).encode()),
    st.sampled_from(ODD_JSON),
    VALUES.map(lambda value: json.dumps(value).encode()),
    OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")),
    st.binary(max_size=200),
)
STATUSES = st.one_of(
    st.sampled_from(
        [100, 101, 102, 103, 200, 201, 202, 204, 205, 206, 226, 301, 304, 307, 400, 401, 403, 404]
    ),
    st.sampled_from(
        [
            407,
            408,
            409,
            416,
            421,
            422,
            425,
            429,
            431,
            451,
            500,
            501,
            502,
            503,
            504,
            511,
            599,
            600,
            999,
        ]
    ),
    st.integers(-1, 10000),
)
ODD_HEADERS = [
    ("Content-Length", ["0", "-1", "ten", "1e3", "9" * 20, "5, 5", "+5", "\u00b2", ""]),
    (
        "Transfer-Encoding",
        ["chunked", "gzip", "identity", "chunked, chunked", "CHUNKED", "x" * 100],
    ),
    ("Content-Encoding", ["gzip", "br", "deflate", "identity", "gzip, gzip, gzip", "zstd"]),
    ("Content-Type", ["text/html", "application/json; charset=utf-16", ""]),
    ("Retry-After", ["0", "-5", "abc", "1.5", "Fri, 31 Dec 9999 23:59:59 GMT", "9" * 5000]),
    ("Location", ["/", "http://[::1", "file:///etc/passwd", "//host:99999/", "http://\u00e9/"]),
    ("Connection", ["close", "keep-alive", "upgrade"]),
    ("X-Request-Id", ["1", "\x1b[31m", "x" * 5000]),
    ("Set-Cookie", ["a=b; domain=.example"]),
    ("WWW-Authenticate", ['Basic realm="x"']),
]
KNOWN_HEADERS = st.sampled_from(ODD_HEADERS).flatmap(
    lambda odd: st.tuples(st.just(odd[0]), st.sampled_from(odd[1]))
)
LATIN_1 = st.characters(max_codepoint=255)
ANY_HEADERS = st.tuples(st.text(LATIN_1, max_size=10), st.text(LATIN_1, max_size=30))
LINES = st.lists(st.one_of(KNOWN_HEADERS, KNOWN_HEADERS, ANY_HEADERS), max_size=4)
GARBAGE = [
    b"\x00",
    b"SSH-2.0-OpenSSH\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"HTTP/1.1 2",
    b"\r\n\r\n",
    b"{}",
]
INTERIM = [b"", b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nA: b\r\n\r\n"]


def chunked(body: bytes, size: int) -> bytes:
    """Return the body in chunks of this size."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])


@st.composite
def answers(draw: st.DrawFn) -> Said:
    """Return an answer, valid or invalid in any of its parts, complete or cut."""
    body, lines = draw(BODIES), list(draw(LINES))
    framing = draw(st.sampled_from(["length", "length", "chunked", "none", "gzip"]))
    if framing == "gzip":
        body = gzip.compress(body)
        lines.append(("Content-Encoding", "gzip"))
    if framing == "chunked":
        lines.append(("Transfer-Encoding", "chunked"))
        body = chunked(body, draw(st.integers(1, 50)))
    elif framing != "none":
        lines.append(
            (
                "Content-Length",
                str(max(0, len(body) + draw(st.sampled_from([0, 0, 0, 1, -1, 1000])))),
            )
        )
    version, status = (
        draw(st.sampled_from(["1.1", "1.1", "1.1", "1.0", "0.9", "2"])),
        draw(STATUSES),
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in draw(st.permutations(lines)))
    data = f"HTTP/{version} {status} Word\r\n{head}\r\n".encode("latin-1") + body
    data = draw(st.sampled_from(INTERIM)) + data
    kind = draw(st.sampled_from(["whole", "whole", "cut", "flipped", "garbage", "more"]))
    if kind == "cut":
        data = data[: draw(st.integers(0, len(data)))]
    elif kind == "flipped":
        at = draw(st.integers(0, len(data) - 1))
        data = data[:at] + draw(st.binary(min_size=1, max_size=3)) + data[at + 1 :]
    elif kind == "garbage":
        data = draw(st.one_of(st.sampled_from(GARBAGE), st.binary(max_size=100)))
    elif kind == "more":
        data += draw(st.one_of(st.just(data), st.sampled_from(GARBAGE), st.binary(max_size=20)))
    whole = kind in ("whole", "more") and framing != "none" and status >= 200
    endings = (
        [FIN, KEEP, KEEP] if whole else [FIN, FIN, RESET]
    )  # else the client would wait, which is HOLD's case
    return Said(data, HOLD if draw(st.integers(0, 50)) == 37 else draw(st.sampled_from(endings)))
