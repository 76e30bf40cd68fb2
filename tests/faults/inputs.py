"""Bad and unusual inputs: what cannot be sent is refused before anything is sent, the rest arrives
unchanged. tests/unit has the tables of each option.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from ansible.utils.unsafe_proxy import wrap_var

from .behaviors import once, refuses
from .case import (
    INVALID_OPTION,
    NOT_SENT_NO_RETRY,
    REJECTED,
    REJECTED_TWICE,
    SUCCESS,
    SUCCESS_AT_SECOND_ATTEMPT,
    Case,
)
from .lab import Lab


def _arrives(text: str):
    """Return a check that a name arrives in the body unchanged, and an id as one segment of the
    path.
    """

    def check(lab: Lab, result: dict) -> bool:
        last = lab.last()
        if lab.operation == "POST":
            return json.loads(last.body)["name"] == text
        return last.path.endswith(f"/{quote(text, safe='')}") and last.path.count("/") == 6

    return check


def _text(name: str, text: str) -> Case:
    what = f"the name, or the id, is {text!a}"
    return Case(name, what, options=lambda lab: lab.named(text), check=_arrives(text))


def _retry_after(name: str, what: str, value: str, expected) -> Case:
    service = refuses("429 Too Many Requests", f"Retry-After: {value}")
    return Case(name, f"429 with Retry-After {what}", expected, service, says="429")


INPUTS = [
    Case(
        "1 token-newline",
        "the token contains a line break",
        INVALID_OPTION,
        options={"access_token": "good\nX-Evil: 1"},
        says="access_token",
    ),
    Case(
        "11 url-trailing-slash",
        "base_url ends with slashes",
        SUCCESS,
        options=lambda lab: {"base_url": f"{lab.url}//"},
        check=lambda lab, result: lab.last().path.startswith("/api/v1/"),
    ),
    Case(
        "14 url-label-70",
        "base_url's host has a label of 70 characters",
        NOT_SENT_NO_RETRY,
        options={"base_url": f"https://{'a' * 70}.example.com"},
        says="does not exist",
    ),
    _text("17 id-slash", "a/../b"),
    _text("18 id-percent-2e", "%2e%2e"),
    _text("19 id-hash", "a#b?c"),
    _text("22 id-unicode", "r\u00f4le \u2603"),
    Case(
        "25 body-unsafe-proxy-string",
        "a field is a string that Ansible marked unsafe",
        SUCCESS,
        options={"extra_attributes": {"note": wrap_var("{{ 1 + 1 }}")}},
        check=lambda lab, result: (
            json.loads(lab.last().body)["attributes"]["note"] == "{{ 1 + 1 }}"
        ),
    ),
    Case(
        "28 ca-directory-empty",
        "ca_path is an empty directory",
        NOT_SENT_NO_RETRY,
        tls="server",
        says="ca_path",
        options=lambda lab: {"ca_path": str(lab.directory)},
    ),
    _retry_after("35a retry-after-negative", "-5 (malformed: ignored)", "-5", REJECTED_TWICE),
    _retry_after(
        "35d retry-after-far-date",
        "9999-12-31 as a date (longer than retry_max_delay)",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        REJECTED,
    ),
    Case(
        "35f retry-after-0",
        "429 with Retry-After 0, then a good answer",
        SUCCESS_AT_SECOND_ATTEMPT,
        service=once(refuses("429 Too Many Requests", "Retry-After: 0")),
    ),
]
