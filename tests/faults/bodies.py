"""Complete 2xx answers whose body is not what the interface promises, or contains more."""

from __future__ import annotations

import json
from base64 import b64encode

from support.service import Peer

from .behaviors import answers, close_delimited, grants, head, whole, with_member
from .case import ANSWER_CUT, ANSWER_UNUSABLE, SUCCESS, Case
from .lab import CLIENT, Lab

SECRET = "a-token-that-comes-back"
BASIC = b64encode(":".join(CLIENT.values()).encode()).decode()


def _body(name: str, what: str, body: bytes, says: str = "", status: str = "200 OK") -> Case:
    """A case with this as the complete body."""
    return Case(name, what, ANSWER_UNUSABLE, service=answers(whole(body, status=status)), says=says)


def _member(
    name: str, what: str, value: str, expected=ANSWER_UNUSABLE, says: str = "", **more
) -> Case:
    """A case whose envelope has one more member, with this value."""
    return Case(
        name, what, expected, service=answers(with_member("extra", value)), says=says, **more
    )


def _hidden(secret: str):
    """Return a check that the result does not contain the secret."""
    return lambda lab, result: secret not in json.dumps(result)


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
        "75 204-with-body",
        "204 with a body, which HTTP does not allow",
        ANSWER_UNUSABLE,
        service=answers(lambda envelope: whole(envelope, status="204 No Content")),
    ),
    Case(
        "75a 204-chunked",
        "204 with malformed chunks",
        ANSWER_CUT,
        service=answers(head("Transfer-Encoding: chunked", status="204 No Content") + b"zz\r\n"),
    ),
    _member("76 json-nan", "NaN", "NaN", says="NaN"),
    _member("77 json-1e999", "a number beyond a double", "1e999", says="beyond the range"),
    _member("78 json-dup-keys", "the same key twice", '1, "extra": 2', says="same key twice"),
    _member("79 json-deep", "5,000 nested arrays", "[" * 5000 + "]" * 5000, says="deeper"),
    _member("80 json-int-5000", "an integer of 5,000 digits", "9" * 5000, says="4300 digits"),
    Case(
        "81 json-bad-utf8",
        "bytes that are not UTF-8",
        ANSWER_UNUSABLE,
        says="UTF-8",
        service=answers(lambda envelope: whole(envelope.replace(b'"id": "', b'"id": "\xff'))),
    ),
    Case(
        "82 json-bom",
        "a byte order mark first",
        ANSWER_UNUSABLE,
        says="not JSON",
        service=answers(lambda envelope: whole(b"\xef\xbb\xbf" + envelope)),
    ),
    Case(
        "83 json-utf16",
        "UTF-16",
        ANSWER_UNUSABLE,
        says="UTF-8",
        service=answers(lambda envelope: whole(envelope.decode().encode("utf-16"))),
    ),
    _member("84 json-lone-surrogate", "a lone surrogate", r'"\ud800"', says="surrogate"),
    _body("85a json-null", "null", b"null", says="not an object"),
    _body("85b json-list", "a list", b'[{"id": "1"}]', says="not an object"),
    _body("85c json-string", "a string", b'"done"', says="not an object"),
    Case(
        "86 json-trailing",
        "text after the object",
        ANSWER_UNUSABLE,
        says="not JSON",
        service=answers(lambda envelope: whole(envelope + b" true")),
    ),
    Case(
        "87 json-ansible-facts-key",
        "members that Ansible would obey: ansible_facts, failed, changed",
        SUCCESS,
        service=answers(with_member("ansible_facts", '{"a": 1}, "failed": true, "changed": false')),
        check=_own_keys,
    ),
    _member(
        "88 json-jinja-string",
        "a member that looks like a template",
        '"{{ 1 + 1 }}"',
        SUCCESS,
        check=lambda lab, result: result["asset"]["extra"] == "{{ 1 + 1 }}",
    ),
    _member(
        "89 body-echoes-token",
        "the access token comes back",
        f'"Bearer {SECRET}"',
        SUCCESS,
        options={"access_token": SECRET},
        check=_hidden(SECRET),
    ),
    _member(
        "90 body-echoes-basic-base64",
        "the client's Basic credentials come back",
        f'"Basic {BASIC}"',
        SUCCESS,
        token_endpoint=grants(),
        check=_hidden(BASIC),
    ),
]

# In addition to the named ones: good answers with other framing or wording.
GOOD_ANSWERS = [
    Case(
        "G1 status-200", "200", SUCCESS, service=answers(lambda body: whole(body, status="200 OK"))
    ),
    Case(
        "G2 status-202",
        "202",
        SUCCESS,
        service=answers(lambda body: whole(body, status="202 Accepted")),
    ),
    Case(
        "G3 close-delimited",
        "a body that ends with the connection",
        SUCCESS,
        service=answers(close_delimited, Peer.fin),
    ),
    Case(
        "G4 close-delimited-tls",
        "the same over TLS",
        SUCCESS,
        tls="server",
        service=answers(close_delimited, Peer.fin),
    ),
    Case(
        "G5 interim-100",
        "100 Continue before the good answer",
        SUCCESS,
        service=answers(lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" + whole(body)),
    ),
    Case(
        "G6 http-1.0",
        "HTTP/1.0",
        SUCCESS,
        service=answers(lambda body: close_delimited(body).replace(b"1.1", b"1.0", 1), Peer.fin),
    ),
    Case(
        "G7 trailing-newline",
        "a line break after the object",
        SUCCESS,
        service=answers(lambda body: whole(body + b"\n")),
    ),
    Case(
        "G8 no-content-type",
        "no Content-Type",
        SUCCESS,
        service=answers(
            lambda body: whole(body).replace(b"Content-Type: application/json\r\n", b"")
        ),
    ),
    Case(
        "G9 smuggled-answer",
        "a second answer behind the end of the first",
        SUCCESS,
        service=answers(lambda body: whole(body) + whole(b'{"id": "forged"}')),
    ),
]
