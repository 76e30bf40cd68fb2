"""Secrets that can be recognised in any form, and a service that echoes them in every way it can."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

from faults.behaviors import whole
from support.service import Peer, Received

# Each secret has a head and a tail that survive any quoting, around characters that quoting
# changes.
MARKS = {
    "token": "'\"/%\\",
    "client": "'\"/%\\ \u00e9\u2603+&=:",
    "parameter": "'\"/%\n\u00e9\t\\",
    "fetched": "\"/'%",
    "plain": "",
}
SECRETS = {name: f"{name}Qx7Head{marks}{name}Zk9Tail" for name, marks in MARKS.items()}
CLIENT_ID = "web"


def needles() -> dict[bytes, str]:
    """Return what must not be found: heads and tails, and the part of their base64 that is the same
    at any offset.
    """
    found = {}
    for name in SECRETS:
        for half in (f"{name}Qx7Head", f"{name}Zk9Tail"):
            found[half.encode()] = f"{half} of {name}"
            for offset in range(3):
                encoded = base64.b64encode(b"\0" * offset + half.encode()).rstrip(b"=")
                found[encoded[4 if offset else 0 : -2]] = f"base64 of {half} of {name}"
    return found


def found_in(content: bytes) -> list[str]:
    """Return the secrets that occur in the content, in any form."""
    return [what for needle, what in needles().items() if needle in content]


def found_below(directory: Path) -> list[tuple[str, str]]:
    """Return the files below a directory that contain secrets, with the secrets; file names count
    too.
    """
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [
        (str(path), what)
        for path in files
        for what in found_in(str(path).encode() + path.read_bytes())
    ]


def forms(names: list[str]) -> list[str]:
    """Return these secrets in every form in which a service might echo them."""
    shown = []
    for secret in map(SECRETS.get, names):
        shown += [
            secret,
            quote(secret, safe=""),
            quote(secret),
            quote_plus(secret),
            json.dumps(secret),
            repr(secret),
        ]
        if secret == SECRETS["client"]:
            pairs = (f"{CLIENT_ID}:{secret}", f"{CLIENT_ID}:{quote_plus(secret)}")
            shown += [base64.b64encode(pair.encode()).decode() for pair in pairs]
    return shown


def echo(peer: Peer) -> None:
    """Answer according to the first segment of the path, and echo the secrets named by the second
    one.
    """
    while request := peer.request():
        answer, names = request.path.split("/")[1:3]
        known = [name for name in names.split("-") if name]
        said = ANSWERS[answer](request, forms(known))
        if not said:
            return
        peer.say(said)


def _envelope(request: Received, said: list[str]) -> bytes:
    keys = {key: form for form in said for key in (form, f"key {form}", f"_ansible_{form}")}
    attributes = {"deep": [keys], "all": " ".join(said), "headers": request.headers}
    return whole(json.dumps({"id": "1", "name": said[0], "attributes": attributes}).encode())


def _refusal(status: str):
    """Refuse, with request ids that are secrets, one of them so long that it has to be truncated."""

    def refuse(request: Received, said: list[str]) -> bytes:
        ids = [
            f"X-Request-Id: {_header(said[0])}",
            f"X-Correlation-Id: {'x' * 990}{_header(said[0])}",
        ]
        return whole(" ".join(said).encode(), *ids, status=status)

    return refuse


def _header(text: str) -> str:
    return text.replace("\n", " ").encode("utf-8").decode("latin-1")


def _denied(length: int):
    """Refuse a token with an error that echoes the secrets, starting at character `length`."""

    def deny(request: Received, said: list[str]) -> bytes:
        fields = {"error": said[0], "error_description": "x" * length + " ".join(said)}
        return whole(json.dumps(fields).encode(), status="400 No")

    return deny


def _granted(mark: str):
    def grant(request: Received, said: list[str]) -> bytes:
        fields = {"access_token": SECRETS["fetched"] + mark, "expires_in": 60, "said": said}
        return whole(json.dumps(fields).encode(), status="200 OK")

    return grant


ANSWERS = {
    "good": _envelope,
    "forbidden": _refusal("403 Forbidden"),
    "unauthorized": _refusal("401 Unauthorized"),
    "error": _refusal("500 Oh"),
    "moved": lambda request, said: whole(b"", f"Location: /{_header(said[0])}", status="307 Moved"),
    "malformed": lambda request, said: whole(b"", _header(said[0]), status="403 Forbidden"),
    "html": lambda request, said: whole("<html>".join(said).encode()),
    "list": lambda request, said: whole(json.dumps(said).encode()),
    "lost": lambda request, said: b"",
    "granted": _granted(""),
    "unusable": _granted(" "),
    "denied": _denied(0),
    "cut": _denied(990),
}
