"""Token endpoints that fail, and services that reject the token."""

from __future__ import annotations

from base64 import b64decode
from urllib.parse import quote_plus

from support.service import Peer, Script

from .behaviors import answers, drips, grants, head, never_answers, once, refuses, whole
from .case import NO_TOKEN, REJECTED_TWICE, SUCCESS, SUCCESS_AT_SECOND_ATTEMPT, Case
from .lab import Lab
from .messages import BRIEF

ODD = {"client_id": "a:b%c \u00e9", "client_secret": "p:s%25 \u2603+/="}


def _no_token(name: str, what: str, token_endpoint: Script, requests: int = 1, **more) -> Case:
    """A case in which the token endpoint grants none, with `requests` requests to it."""
    more.setdefault("says", "auth_url")
    return Case(name, what, NO_TOKEN, token_endpoint=token_endpoint, check=_asked(requests), **more)


def _says(body: bytes, status: str = "200 OK") -> Script:
    return answers(whole(body, status=status), carried_out=False)


def _asked(times: int):
    return lambda lab, result: len(lab.others["token_endpoint"].received) == times


def _expires(letter: str, name: str, value: object) -> Case:
    return Case(
        f"95{letter} expires_in-{name}",
        f"expires_in is {name}",
        SUCCESS,
        token_endpoint=grants(expires_in=value),
    )


def _odd_client(lab: Lab, result: dict) -> bool:
    """Whether the client's credentials arrived as RFC 6749 section 2.3.1 requires: form-encoded,
    then base64.
    """
    kind, dummy, pair = (
        lab.others["token_endpoint"].received[-1].headers["authorization"].partition(" ")
    )
    return (kind, b64decode(pair).decode()) == (
        "Basic",
        ":".join(quote_plus(part) for part in ODD.values()),
    )


TOKENS = [
    _no_token(
        "91 token-200-html", "the token endpoint answers with an HTML page", _says(b"<html>")
    ),
    _no_token("92 no-access_token", "no access_token", grants(access_token=None)),
    _no_token("93a access_token-number", "access_token is a number", grants(access_token=4711)),
    _no_token("93b access_token-empty", "access_token is empty", grants(access_token="")),
    _no_token(
        "93c access_token-newline",
        "access_token contains a line break",
        grants(access_token="a\r\nX-Evil: 1"),
    ),
    _no_token("94 token_type-mac", "token_type is mac", grants(token_type="mac"), says="Bearer"),
    _expires("a", "0", 0),
    _expires("b", "negative", -60),
    _expires("c", "text", "soon"),
    _expires("d", "absent", None),
    _no_token(
        "96 token-401-basic-vs-body",
        "401 invalid_client, as for the wrong client_authentication",
        _says(b'{"error": "invalid_client", "error_description": "no Basic"}', "401 Unauthorized"),
        says="invalid_client: no Basic",
    ),
    _no_token(
        "97 token-url-redirect",
        "the token endpoint redirects",
        refuses("307 Temporary Redirect", "Location: /elsewhere"),
        says="307",
    ),
    _no_token(
        "98 token-drip",
        "the token endpoint's answer drips until the deadline, twice",
        drips(lambda body: head("Content-Length: 9999", status="200 OK"), b" ", carried_out=False),
        2,
        options=BRIEF,
    ),
    Case(
        "99 new-token-also-401",
        "the service refuses the token and the next one",
        REJECTED_TWICE,
        token_endpoint=grants(),
        service=refuses("401 Unauthorized"),
        check=_asked(2),
        says="401",
    ),
    Case(
        "100 secret-with-colon/percent/unicode",
        "client_id and client_secret hold a colon, a percent, a snowman",
        SUCCESS,
        token_endpoint=grants(),
        options=ODD,
        check=_odd_client,
    ),
]

# In addition to the named ones.
MORE_TOKENS = [
    Case(
        "T1 token-401-once",
        "the service refuses the first token, and accepts the next",
        SUCCESS_AT_SECOND_ATTEMPT,
        token_endpoint=grants(),
        service=once(refuses("401 Unauthorized")),
        check=_asked(2),
    ),
    _no_token(
        "T2 token-500", "the token endpoint fails", refuses("500 Internal Server Error"), says="500"
    ),
    _no_token(
        "T3 token-503",
        "the token endpoint is overloaded, twice",
        refuses("503 Unavailable"),
        2,
        says="503",
    ),
    _no_token(
        "T6 token-endless",
        "the token endpoint sends an endless body",
        drips(lambda body: head(status="200 OK"), b" " * (1 << 20), 0, carried_out=False),
        says="longer than 4194304 bytes",
    ),
    _no_token(
        "T7 token-cl-5001-digits",
        "the token endpoint sends a Content-Length of 5,001 digits, twice",
        answers(
            head(f"Content-Length: {'9' * 5001}", status="200 OK"), Peer.fin, carried_out=False
        ),
        2,
        says="malformed",
    ),
    _no_token(
        "T4 token-lost",
        "the token endpoint hangs up, twice",
        never_answers(Peer.fin, carried_out=False),
        2,
    ),
]
