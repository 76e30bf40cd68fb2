"""Bad and unusual inputs: what cannot be sent is refused before anything is sent, the rest arrives
unchanged.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from ansible.utils.unsafe_proxy import wrap_var

from .behaviors import once, refuses, segment
from .case import (
    INVALID_OPTION,
    NOT_SENT,
    NOT_SENT_NO_RETRY,
    REJECTED,
    REJECTED_TWICE,
    SUCCESS,
    SUCCESS_AT_SECOND_ATTEMPT,
    Case,
    Ends,
)
from .lab import BEHIND_PROXY, Lab

TOKEN = "token-of-the-tests"
_REFUSED_ID = Ends(post=SUCCESS.post, put=INVALID_OPTION.put)


def _authorization(lab: Lab, result: dict) -> bool:
    return lab.last().headers["authorization"] == f"Bearer {TOKEN}"


def _arrives(text: str):
    """Return a check that a name arrives in the body unchanged, and an id as one segment of the
    path.
    """

    def check(lab: Lab, result: dict) -> bool:
        if lab.operation == "POST":
            return json.loads(lab.last().body)["name"] == text
        return segment(lab.last()) == quote(text, safe="") and lab.last().path.count("/") == 6

    return check


def _token(name: str, what: str, token: str) -> Case:
    return Case(name, what, INVALID_OPTION, options={"access_token": token}, says="access_token")


def _url(name: str, what: str, url: str) -> Case:
    return Case(name, what, INVALID_OPTION, options={"base_url": url}, says="base_url")


def _text(name: str, text: str, expected=SUCCESS) -> Case:
    what = f"the name, or the id, is {text!a}"
    check = _arrives(text)
    return Case(
        name,
        what,
        expected,
        options=lambda lab: lab.named(text),
        check=lambda lab, result: (
            "id:" in result["msg"] if result.get("failed") else check(lab, result)
        ),
    )


def _retry_after(letter: str, name: str, what: str, value: str, expected) -> Case:
    return Case(
        f"35{letter} retry-after-{name}",
        f"429 with Retry-After {what}",
        expected,
        service=refuses("429 Too Many Requests", f"Retry-After: {value}"),
        says="429",
    )


def _not_loopback(lab: Lab) -> dict:
    """Return the options for the service at an address that is not called loopback."""
    return {"base_url": lab.url.replace("127.0.0.1", BEHIND_PROXY), "allow_http": True}


def _netrc(machine: str):
    """Return the environment variable of a home whose .netrc has an entry for this host."""
    return lambda lab: {"NETRC": lab.file(".netrc", f"{machine} login eve password mallory\n")}


INPUTS = [
    _token("1 token-newline", "the token contains a line break", "good\nX-Evil: 1"),
    _token("2 token-NUL", "the token contains a NUL", "go\0od"),
    _token(
        "3 token-non-latin1",
        "the token contains a character that a header cannot hold",
        "tok\u0119n",
    ),
    _token("4 token-empty", "the token is empty", ""),
    _token("5 token-trailing-space", "the token ends with a space", "token "),
    Case(
        "6 token-one-letter",
        "the token is a single character",
        SUCCESS,
        options={"access_token": "Z"},
        check=lambda lab, result: lab.last().headers["authorization"] == "Bearer Z",
    ),
    _url(
        "7 url-userinfo", "base_url contains a user and a password", "https://eve:mallory@127.0.0.1"
    ),
    _url("8 url-no-scheme", "base_url has no scheme", "127.0.0.1:8080"),
    _url("9 url-file", "base_url is a file: URL", "file:///etc/hostname"),
    _url("10 url-port-99999", "base_url has an invalid port", "http://127.0.0.1:99999"),
    Case(
        "11 url-trailing-slash",
        "base_url ends with slashes",
        SUCCESS,
        options=lambda lab: {"base_url": f"{lab.url}//"},
        check=lambda lab, result: lab.last().path.startswith("/api/v1/"),
    ),
    _url("12 url-query", "base_url has a query", "http://127.0.0.1/?a=b"),
    _url(
        "13 url-idn-homoglyph",
        "base_url's host has a character that looks like another",
        "https://ex\u0430mple.com",
    ),
    Case(
        "14 url-label-70",
        "base_url's host has a label of 70 characters",
        NOT_SENT_NO_RETRY,
        options={"base_url": f"https://{'a' * 70}.example.com"},
        says="does not exist",
    ),
    _text("15 id-dot", ".", _REFUSED_ID),
    _text("16 id-dotdot", "..", _REFUSED_ID),
    _text("17 id-slash", "a/../b"),
    _text("18 id-percent-2e", "%2e%2e"),
    _text("19 id-hash", "a#b?c"),
    Case(
        "20 id-empty",
        "the name, or the id, is empty",
        INVALID_OPTION,
        options=lambda lab: lab.named(""),
        says="must not be empty",
    ),
    _text("21 id-newline", "a\nb", _REFUSED_ID),
    _text("22 id-unicode", "r\u00f4le \u2603"),
    Case(
        "23 body-nan",
        "a field is not a number",
        INVALID_OPTION,
        options={"extra_attributes": {"load": float("nan")}},
        says="NaN",
    ),
    Case(
        "24 body-lone-surrogate",
        "a field contains a lone surrogate",
        INVALID_OPTION,
        options={"extra_attributes": {"note": "\ud800"}},
        says="surrogate",
    ),
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
        "26 ca-missing",
        "ca_path does not exist",
        INVALID_OPTION,
        tls="server",
        says="ca_path",
        options=lambda lab: {"ca_path": str(lab.directory / "missing.pem")},
    ),
    Case(
        "27 ca-not-pem",
        "ca_path is not a certificate",
        INVALID_OPTION,
        tls="server",
        says="ca_path",
        options=lambda lab: {"ca_path": lab.file("no.pem", "no certificate")},
    ),
    Case(
        "28 ca-directory-empty",
        "ca_path is an empty directory",
        NOT_SENT_NO_RETRY,
        tls="server",
        says="ca_path",
        options=lambda lab: {"ca_path": str(lab.directory)},
    ),
    Case(
        "29 netrc-machine",
        ".netrc has a password for the host",
        SUCCESS,
        check=_authorization,
        options=_netrc("machine 127.0.0.1"),
    ),
    Case(
        "30 netrc-default",
        ".netrc has a password for every host",
        SUCCESS,
        check=_authorization,
        options=_netrc("default"),
    ),
    Case(
        "31 env-ca-bundle-vs-no-verify",
        "REQUESTS_CA_BUNDLE names another authority, validate_certs is false",
        SUCCESS,
        tls="server",
        options=lambda lab: {
            "validate_certs": False,
            "ca_path": None,
            "REQUESTS_CA_BUNDLE": lab.file("other.pem", "no certificate"),
        },
    ),
    Case(
        "32 env-proxy-loopback",
        "HTTP_PROXY names a proxy, but the service is on this host",
        SUCCESS,
        options=lambda lab: {
            "base_url": lab.url.replace("127.0.0.1", "localhost"),
            "HTTP_PROXY": "http://127.0.0.1:9",
        },
    ),
    Case(
        "32a env-proxy-dead",
        "HTTP_PROXY names a proxy that is not running",
        NOT_SENT,
        options=lambda lab: {**_not_loopback(lab), "HTTP_PROXY": "http://127.0.0.1:9"},
        says=":9, the proxy that the environment names",
    ),
    Case(
        "33 env-proxy-none",
        "the same, but use_proxy is false",
        SUCCESS,
        options=lambda lab: {
            **_not_loopback(lab),
            "HTTP_PROXY": "http://127.0.0.1:9",
            "use_proxy": False,
        },
    ),
    *(
        Case(
            f"34{letter} timeout-{name}",
            f"timeout is {name}",
            INVALID_OPTION,
            options={"timeout": value},
            says="timeout",
        )
        for letter, name, value in (
            ("a", "zero", 0),
            ("b", "negative", -1),
            ("c", "infinite", float("inf")),
        )
    ),
    _retry_after("a", "negative", "-5 (malformed: ignored)", "-5", REJECTED_TWICE),
    _retry_after("b", "text", "abc (malformed: ignored)", "abc", REJECTED_TWICE),
    _retry_after("c", "fraction", "1.5 (malformed: ignored)", "1.5", REJECTED_TWICE),
    _retry_after(
        "d",
        "far-date",
        "9999-12-31 as a date (longer than retry_max_delay)",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        REJECTED,
    ),
    _retry_after("e", "huge", "5,000 digits (longer than retry_max_delay)", "9" * 5000, REJECTED),
    Case(
        "35f retry-after-0",
        "429 with Retry-After 0, then a good answer",
        SUCCESS_AT_SECOND_ATTEMPT,
        service=once(refuses("429 Too Many Requests", "Retry-After: 0")),
    ),
]
