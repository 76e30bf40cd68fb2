"""Token endpoints that fail, and services that reject the token; tests/tokens has the rest."""

from __future__ import annotations

from support.service import Peer, Script

from .behaviors import answers, drips, grants, head, once, refuses
from .case import NO_TOKEN, SUCCESS_AT_SECOND_ATTEMPT, Case


def _asked(times: int):
    return lambda lab, result: len(lab.others["token_endpoint"].received) == times


def _no_token(name: str, what: str, token_endpoint: Script, requests: int, says: str) -> Case:
    """A case in which the token endpoint grants none, with `requests` requests to it."""
    return Case(
        name, what, NO_TOKEN, token_endpoint=token_endpoint, check=_asked(requests), says=says
    )


TOKENS = [
    _no_token("92 no-access_token", "no access_token", grants(access_token=None), 1, "auth_url"),
    _no_token("94 token_type-mac", "token_type is mac", grants(token_type="mac"), 1, "Bearer"),
    Case(
        "T1 token-401-once",
        "the service refuses the first token, and accepts the next",
        SUCCESS_AT_SECOND_ATTEMPT,
        token_endpoint=grants(),
        service=once(refuses("401 Unauthorized")),
        check=_asked(2),
    ),
    _no_token(
        "T3 token-503", "the token endpoint is overloaded, twice", refuses("503 No"), 2, "503"
    ),
    _no_token(
        "T6 token-endless",
        "the token endpoint sends an endless body",
        drips(lambda body: head(status="200 OK"), b" " * (1 << 20), 0, carried_out=False),
        1,
        "longer than 4194304 bytes",
    ),
    _no_token(
        "T7 token-cl-5001-digits",
        "the token endpoint sends a Content-Length of 5,001 digits, twice",
        answers(
            head(f"Content-Length: {'9' * 5001}", status="200 OK"), Peer.fin, carried_out=False
        ),
        2,
        "malformed",
    ),
]
