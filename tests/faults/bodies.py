"""Complete 2xx answers whose body is not what the interface promises, or contains more."""

from __future__ import annotations

from support.service import Peer

from .behaviors import answers, close_delimited, head, whole
from .case import ANSWER_CUT, ANSWER_UNUSABLE, SUCCESS, Case
from .lab import Lab


def _body(name: str, what: str, body: bytes, says: str = "") -> Case:
    """A case with this as the complete body."""
    return Case(name, what, ANSWER_UNUSABLE, service=answers(whole(body)), says=says)


def _own_keys(lab: Lab, result: dict) -> bool:
    return (
        result["changed"] is True
        and "failed" not in result
        and set(result["ansible_facts"]) == {lab.resource}
    )


BODIES = [
    _body("73 html-login-200", "200 with an HTML page", b"<html><form>user name: </form></html>"),
    _body("74 empty-200", "200 without a body", b""),
    Case(
        "75a 204-chunked",
        "204 with malformed chunks",
        ANSWER_CUT,
        service=answers(head("Transfer-Encoding: chunked", status="204 No Content") + b"zz\r\n"),
    ),
    _body("76 json-nan", "NaN", b'{"id": NaN}', says="NaN"),
    _body("85b json-list", "a list", b'[{"id": "1"}]', says="not an object"),
    Case(
        "87 json-ansible-facts-key",
        "members that Ansible would obey: ansible_facts, failed, changed",
        SUCCESS,
        service=answers(
            lambda envelope: whole(
                b'{"ansible_facts": {"a": 1}, "failed": true, "changed": false, ' + envelope[1:]
            )
        ),
        check=_own_keys,
    ),
]

GOOD_ANSWERS = [
    Case(
        "G6 http-1.0",
        "HTTP/1.0",
        SUCCESS,
        service=answers(lambda body: close_delimited(body).replace(b"1.1", b"1.0", 1), Peer.fin),
    ),
    Case(
        "G9 smuggled-answer",
        "a second answer behind the end of the first",
        SUCCESS,
        service=answers(lambda body: whole(body) + whole(b'{"id": "forged"}')),
    ),
]
