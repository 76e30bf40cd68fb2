# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`GET /`: the page for people, with headers that allow it only what it needs."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from .faults import OPERATIONS
from .messages import Request, Response

_FILE = Path(__file__).with_name("page.html")
_INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


def is_page(request: Request) -> bool:
    """Return whether the request is for the page, even without the slash after the prefix."""
    return request.method == "GET" and (request.path == "/" or _lacks_slash(request))


def handle(request: Request) -> Response:
    """Answer with the page, or with a redirect if the slash is missing: it has relative URLs."""
    if _lacks_slash(request):
        return Response(308, (("Location", f"{request.prefix}/"),))
    body = content()
    return Response(200, (*_HEADERS, ("Content-Security-Policy", policy(body))), body)


def content() -> bytes:
    """Return the page."""
    options = "".join(f"<option>{operation}</option>" for operation in reversed(OPERATIONS))
    return _FILE.read_bytes().replace(b"<!-- operations -->", options.encode("ascii"))


def policy(body: bytes) -> str:
    """Return a Content-Security-Policy that allows only these scripts and styles."""
    allowed: dict[str, list[str]] = {"script": [], "style": []}
    for kind, text in _INLINE.findall(body):
        digest = base64.b64encode(hashlib.sha256(text).digest()).decode("ascii")
        allowed[kind.decode("ascii")].append(f"'sha256-{digest}'")
    sources = "; ".join(f"{kind}-src {' '.join(hashes)}" for kind, hashes in allowed.items())
    return f"{_NOTHING_ELSE}; {sources}"


def _lacks_slash(request: Request) -> bool:
    return request.target.partition("?")[0] == request.prefix


_HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)
_NOTHING_ELSE = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; "
    "img-src data:; require-trusted-types-for 'script'; trusted-types 'none'"
)
