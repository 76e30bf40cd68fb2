"""Generated answers: framing, headers, chunks, codings and JSON, right and wrong, and bytes at
random.

An answer depends on a seed and a number only, so that one that fails can be looked at alone:

    PYTHONPATH=tests .venv/bin/python -m faults.generated SEED NUMBER
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import zlib
from dataclasses import dataclass
from random import Random
from urllib.parse import quote, quote_plus

MAX_ANSWER = 4 * 1024 * 1024  # bytes that are read of an answer (docs/open_points.md)
ENDLESS = 64 * 1024 * 1024  # bytes of an answer without end: more than the kernel buffers
INTERIM = (100, 102, 103)
SUCCESSES = (200, 201, 202, 203, 204, 206, 299)
FAILURES = (*range(300, 309), *range(400, 432), 451, *range(500, 512), 599, 600, 999)
BOMB = gzip.compress(bytes(MAX_ANSWER * 2), 1, mtime=0)
TOKEN = "token-of-a-generated-answer"
ACCESS_TOKEN = 'given"token/%of\\the-tests'
CLIENT_ID, CLIENT_SECRET = "client-of-the-tests", 'secret of/the\\client+"%'


@dataclass
class Generated:
    """An answer, after which the service closes the connection, and what must become of the
    request.
    """

    data: bytes
    filler: bytes = b""  # repeated after it, without end
    outcome: str = (
        ""  # what a task must report whose request gets this answer; empty if random bytes decide
    )
    asset: dict | None = None  # what it must return; None if it must fail or may fail

    @property
    def times(self) -> int:
        """How often the filler is sent."""
        return ENDLESS // len(self.filler) if self.filler else 0


def forms_of(secret: str) -> list[str]:
    """Return a credential in the forms in which a service may echo it."""
    forms = [secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]]
    if secret == CLIENT_SECRET:
        pairs = (f"{CLIENT_ID}:{each}" for each in (secret, quote_plus(secret)))
        forms += (base64.b64encode(pair.encode()).decode() for pair in pairs)
    return forms


ECHOED = [*forms_of(ACCESS_TOKEN), *forms_of(CLIENT_SECRET)]
ECHO = "echo"  # the field of an asset that has credentials in it


@dataclass
class _Part:
    """Bytes of an answer; `is_good`: a client must understand them."""

    data: bytes
    is_good: bool = True
    filler: bytes = b""


def generate(seed: int, number: int) -> Generated:
    """Return the answer with this number."""
    rng = Random(f"{seed} {number}")
    kind = rng.random()
    if kind < 0.03:
        return Generated(rng.randbytes(rng.choice((1, 20, 300, 70_000))))
    answer = _structured(rng)
    if kind < 0.3:
        return Generated(_damaged(rng, answer.data), answer.filler)
    return answer


def outcome_of(status: int) -> str:
    """Return what a final status says of the request (DESIGN 5), by itself."""
    if status // 100 == 2:
        return "accepted"
    is_refusal = status in (307, 308) or (status // 100 == 4 and status != 408)
    return "rejected" if is_refusal else "unknown"


def _structured(rng: Random) -> Generated:
    status = rng.choice(SUCCESSES if rng.random() < 0.8 else FAILURES)
    asset, text = _document(rng)
    coding, body = _coded(rng, text)
    framing, framed = _framed(rng, body.data)
    lines = [coding, framing, *(_header(rng) for _number in range(rng.choice((0, 1, 3))))]
    rng.shuffle(lines)
    before = b"".join(
        _head(rng.choice(INTERIM), []) for _number in range(rng.choice((0, 0, 0, 1, 5)))
    )
    said = _echo(rng) if rng.random() < 0.05 else b"Said"
    head = before + _head(status, [line.data for line in lines if line.data], said)
    endless = next((line for line in lines if line.filler), None)
    if endless:
        return Generated(_head(status, [endless.data])[:-4], endless.filler, "unknown")
    if rng.random() < 0.03:
        return _too_many_headers(rng, status)
    data = head + framed.data
    parts = [*lines, body, framed]
    is_good = (
        all(part.is_good for part in parts) and outcome_of(status) == "accepted" and status != 204
    )
    is_short = len(data) <= MAX_ANSWER and not framed.filler
    return Generated(
        data, framed.filler, outcome_of(status), asset if is_good and is_short else None
    )


def _head(status: int, lines: list[bytes], said: bytes = b"Said") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 %d %s" % (status, said), *lines, b"", b""])


def _echo(rng: Random) -> bytes:
    return rng.choice(ECHOED).encode()


def _too_many_headers(rng: Random, status: int) -> Generated:
    """More lines, or a longer one, than http.client reads."""
    lines = rng.choice(([b"X: a"] * 200, [b"X: " + b"a" * 70_000]))
    return Generated(_head(status, lines), outcome="unknown")


def _header(rng: Random) -> _Part:
    good = (
        b"X-Request-Id: r1",
        b"Location: /somewhere",
        b"Connection: keep-alive",
        b"Connection: close",
        b"X-Bytes: " + bytes(rng.choice(range(0x80, 0x100)) for _number in range(40)),
        b"X-Folded: a\r\n b\r\n\tc",
        b"X-Long: " + b"a" * 60_000,
        b"Retry-After: 0",
        b"Set-Cookie: a=b",
    )
    bad = (
        b"no colon",
        b" a blank first: a",
        b"X: a\rContent-Length: 1",
        b"X: a\nY: b",
        b"X: \0\x0b\x0c\x1c",
        b"Content-Type: multipart/mixed; boundary=a",
        b"Content-Disposition: a; filename*0*=utf-8''%ff",
        b"Retry-After: " + b"9" * 5000,
        b"Retry-After: Fri, 31 Dec 99999 23:59:59 GMT",
    )
    if rng.random() < 0.01:
        return _Part(
            b"X-Endless: ", False, rng.choice((b"a" * 65_000, b"a\r\n b", b"a\r\nX: ")) * 10
        )
    if rng.random() < 0.2:
        name = rng.choice((b"X-Request-Id", b"Traceparent", b"Location", b"Retry-After", b"X"))
        return _Part(name + b": " + _echo(rng))
    return _Part(rng.choice(good)) if rng.random() < 0.8 else _Part(rng.choice(bad), False)


def _coded(rng: Random, text: _Part) -> tuple[_Part, _Part]:
    """Return the header that names the coding, and the body in it."""
    if rng.random() < 0.5:
        return _Part(b""), text
    packed = gzip.compress(text.data, mtime=0)
    name, data, is_good = rng.choice(
        (
            (b"identity", text.data, True),
            (b"gzip", packed, True),
            (b"deflate", zlib.compress(text.data), True),
            (b"gzip", packed[:-9], False),
            (b"gzip", text.data, False),
            (b"gzip", packed * 2, False),
            (b"gzip, gzip", gzip.compress(packed, mtime=0), False),
            (b"gzip", BOMB, False),
            (b"br", text.data, False),
            (b"deflate", rng.randbytes(50), False),
        )
    )
    return _Part(b"Content-Encoding: " + name if name else b"", is_good), _Part(data, text.is_good)


def _framed(rng: Random, body: bytes) -> tuple[_Part, _Part]:
    """Return the header that says where the body ends, and the body with whatever is around it."""
    kind = rng.choice(
        ("length", "length", "chunks", "chunks", "close", "wrong length", "wrong chunks")
    )
    if kind == "close":
        filler = rng.choice((b" ", b"\0")) * 65_536 if rng.random() < 0.05 else b""
        return _Part(b""), _Part(body, not filler, filler)
    if kind == "length":
        length = b"Content-Length: %d" % len(body)
        line = rng.choice((length, length + b"\r\n" + length))
        return _Part(line), _Part(body + rng.choice((b"", b"", b"HTTP/1.1 200 OK\r\n\r\n")))
    if kind == "wrong length":
        return _Part(b"Content-Length: " + _wrong_length(rng, len(body)), False), _Part(body, False)
    chunked = b"Transfer-Encoding: chunked"
    if kind == "chunks":
        sizes = rng.choice((1, 7, 1000, 70_000))
        pieces = [body[at : at + sizes] for at in range(0, min(len(body), 3000 * sizes), sizes)]
        is_whole = len(b"".join(pieces)) == len(body)
        extension = rng.choice(
            (b"", b"", b";a=b", b" ", b";" + b"a" * 60_000 if len(pieces) < 9 else b"")
        )
        chunks = [b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in pieces]
        last = (
            b"0"
            + extension
            + b"\r\n"
            + rng.choice((b"", b"", b"X: a\r\n", b"X: a\r\n" * 300))
            + b"\r\n"
        )
        return _Part(chunked), _Part(b"".join(chunks) + last, is_whole)
    return _Part(chunked, False), _wrong_chunks(rng, body)


def _wrong_length(rng: Random, length: int) -> bytes:
    return rng.choice(
        (
            b"-2",
            b"",
            b"+%d" % length,
            b"%d" % (length + 9),
            b"1\r\nContent-Length: 2",
            b"9" * 5001,
            b"-" + b"9" * 5001,
            b"\xb2",
            b"%d\r\nTransfer-Encoding: chunked" % length,
        )
    )


def _wrong_chunks(rng: Random, body: bytes) -> _Part:
    size = b"%x\r\n" % len(body)
    return rng.choice(
        (
            _Part(b"-1\r\n", False, b"a" * 65_536),
            _Part(b"-5\r\n" + body, False),
            _Part(b"-" + size + body, False),
            _Part(b"zz\r\n" + body, False),
            _Part(b"f" * 70_000 + b"\r\n" + body, False),
            _Part(b"ffffffffffffffff\r\n" + body, False, rng.choice((b"", b"a" * 65_536))),
            _Part(size + body + b"XX0\r\n\r\n", False),
            _Part(
                size + body + b"\r\n0\r\n", False, rng.choice((b"X: a\r\n" * 9000, b"a" * 65_536))
            ),
        )
    )


def _document(rng: Random) -> tuple[dict, _Part]:
    """Return an asset, which is a token as well, and a text that may be its JSON."""
    asset = {
        "id": "vm-1",
        "name": "web01",
        "attributes": {},
        "access_token": TOKEN,
        "expires_in": 60,
    }
    asset.update((f"m{number}", _value(rng, 5)) for number in range(rng.choice((0, 1, 9))))
    if rng.random() < 0.3:
        asset[ECHO] = rng.choice((f"It was {rng.choice(ECHOED)}.", [{rng.choice(ECHOED): None}]))
    if rng.random() < 0.1:
        asset.update(error="invalid_client", error_description=f"not {rng.choice(ECHOED)}")
    if rng.random() < 0.02:
        asset["long"] = rng.choice(("\u2603" * 300_000, [[]] * 140_000, [{"": 0}] * 70_000))
    text = json.dumps(asset, ensure_ascii=rng.random() < 0.5).encode()
    if rng.random() < 0.7:
        return asset, _Part(text + rng.choice((b"", b"\n", b" " * 1000)))
    return asset, _Part(_wrong_json(rng, text), False)


def _value(rng: Random, depth: int) -> object:
    kind = rng.randrange(7 if depth else 5)
    if kind == 5:
        return [_value(rng, depth - 1) for _number in range(rng.randrange(4))]
    if kind == 6:
        return {f"k{number}": _value(rng, depth - 1) for number in range(rng.randrange(4))}
    letters = 'a\u00e9\u2603\U0001f600 {}[],:"\\/\0\n\x7f'
    return (
        None,
        rng.random() < 0.5,
        rng.choice((0, -1, 10**15, 10**600, -(10**4000))),
        rng.uniform(-1e300, 1e300),
        "".join(rng.choices(letters, k=rng.randrange(30))),
    )[kind]


def _wrong_json(rng: Random, text: bytes) -> bytes:
    values = (
        b"NaN",
        b"1e999",
        b'1, "m": 2',
        b"[" * 100_000,
        b"9" * 5000,
        b"1" * 5000 + b".5e",
        b'"\\ud800"',
        b'"\n"',
        b"[1,]",
        b"[" + b"0," * 310_000 + b"0]",
        b"{" + b'"a":{' * 1000,
        b'{"__ansible_unsafe": "a"}',
    )
    whole = (
        b"",
        b"null",
        b'"a"',
        b"0",
        b"\xef\xbb\xbf" + text,
        text.decode().encode("utf-16"),
        text[:-1],
        text + text,
        rng.randbytes(100),
        b"\xf0\x9f" + text,
    )
    if rng.random() < 0.5:
        return rng.choice(whole)
    return b'{"m": %s, ' % rng.choice(values) + text[1:]


def _damaged(rng: Random, data: bytes) -> bytes:
    """Change the bytes at a few places."""
    changed = bytearray(data)
    for _number in range(rng.choice((1, 1, 2, 5, 30))):
        reach = rng.choice((40, 400, len(changed) + 1))  # mostly in the status line and the headers
        at = rng.randrange(min(reach, len(changed) + 1))
        size = rng.choice((0, 1, 1, 4, 40))
        new = rng.choice(
            (
                b"",
                b"\r\n",
                b"\n",
                b"\r",
                b"\0",
                b":",
                b";",
                b"-",
                b"0",
                b"\xff",
                b" ",
                rng.randbytes(3),
            )
        )
        changed[at : at + size] = new * rng.choice((1, 1, 1, 9))
    return bytes(changed)


if __name__ == "__main__":
    print(generate(*map(int, sys.argv[1:])))
