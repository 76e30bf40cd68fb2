"""Every form in which a secret may come back is recognised."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import (
    Secrets,
    basic,
    credentials_in_url,
    holds_placeholder,
    is_credential_name,
    without_placeholders,
)
from hypothesis import given
from hypothesis import strategies as st
from support import Context, Result

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
SPECIAL = [
    "quo'te\"d",
    "sla/sh-slash",
    "per%cent",
    "back\\slash",
    "new\\new-%41%6e'd\"",
    "&amp;-per%26cent-\\u0026",
    "smile-and-smile-\U0001f600",
]
# How displays and servers transform a text.
SHOWN = {
    "raw": lambda text: text,
    "quoted": lambda text: quote(text, safe=""),
    "quoted but slashes": quote,
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json in UTF-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "json of repr": lambda text: json.dumps(repr(text)[1:-1])[1:-1],
    "quoted in lower case": lambda text: re.sub(
        "%..", lambda escape: escape[0].lower(), quote(text, safe="")
    ),
    "form in lower case": lambda text: re.sub(
        "%..", lambda escape: escape[0].lower(), quote_plus(text)
    ),
    "json with escaped slashes": lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
}


def secrets(*credentials: str) -> Secrets:
    return Secrets(credentials)


def texts(value: object) -> Iterator[str]:
    """Yield every text in a value, keys as well."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts(part)


@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("secret", SPECIAL)
def test_each_form_is_masked_in_values_and_in_keys(secret, show):
    shown = show(secret)
    keys = {f"key {shown}": [{"deep": shown}], f"_ansible_{shown}": 1, shown: [{shown: 2}]}
    result = Result(msg=Message(f"it said {shown}."), asset=keys, changed=True)
    context = Context(False, secrets(secret))
    scrubbed = context.secrets.scrub(result).as_ansible()
    assert not [text for text in texts(scrubbed) if shown in text]
    assert context.secrets.is_in(f"it said {json.dumps(shown)}, twice escaped")
    assert scrubbed["changed"] is True


CREDENTIALS = [  # of gateways, identity providers and people
    "Ocp-Apim-Subscription-Key",
    "X-Api-Key",
    "apikey",
    "subscriptionKey",
    "X-Auth",
    "X-MyAuth",
    "X-Vault-Token",
    "X-JWT",
    "X-Hub-Signature-256",
    "sig",
    "totp",
    "Cookie",
    "X-Session-Id",
    "passWord",
    "Pass-Phrase",
    "credentials",
    "code",
    "device_code",
    "SAMLResponse",
    "privateKey",
]
ORDINARY = [
    "X-Tenant",
    "Idempotency-Key",
    "public_key",
    "author",
    ":authority",
    "X-Keyboard",
    "key_id",
    "scope",
    "client_assertion_type",
    "tokenType",
    "X-Auth-Email",
    "X-Signature-Version",
    "signal",
    "X-Country-Code",
    "X-Opinion",
    "",
]


@pytest.mark.parametrize("name", CREDENTIALS)
def test_the_name_marks_its_value_as_a_credential(name):
    assert is_credential_name(name)
    assert is_credential_name(name.lower()) or name in (
        "X-MyAuth",
        "SAMLResponse",
    )  # their words depend on case


@pytest.mark.parametrize("name", ORDINARY)
def test_other_names_do_not(name):
    assert not is_credential_name(name)


@pytest.mark.parametrize(("length", "is_short"), [(0, False), (1, True), (7, True), (8, False)])
def test_a_credential_of_eight_characters_is_masked(length, is_short):
    credential = "s" * length
    known = secrets(credential)
    assert bool(known.warnings()) is is_short
    assert known.is_in([f"x{credential}"]) is (length == 8)


def test_the_words_of_a_result_are_kept_whatever_the_secret_is():
    result = Result(outcome="accepted", asset={"accepted": "accepted"}, msg=Message("accepted"))
    scrubbed = secrets("accepted").scrub(result)
    assert (scrubbed.outcome, str(scrubbed.msg)) == ("accepted", "********")
    assert scrubbed.asset == {"********": "********"}


ESCAPES = {
    "as it is": lambda text: text,
    "HTML": html.escape,
    "HTML by numbers": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "HTML by hexadecimal numbers": lambda text: "".join(f"&#x{ord(letter):x};" for letter in text),
    "URL": lambda text: "".join(f"%{ord(letter):02x}" for letter in text),
    "JSON": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "bytes": lambda text: "".join(f"\\x{ord(letter):02x}" for letter in text),
    "backslashes": lambda text: re.sub(r"([^a-z])", r"\\\1", text),
    "HTML in JSON": lambda text: json.dumps(html.escape(text)).replace("&", "\\u0026"),
    "URL in HTML in JSON": lambda text: json.dumps(html.escape(quote(text, safe=""))),
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_an_error_body_with_a_secret_in_it_is_hidden_however_it_is_escaped(escape):
    secret = "a+b&c<d>'e\"f/g"
    body = f"<p>no: {escape(secret)}</p>"
    assert secrets(secret).scrub(Result(error_body=body)).error_body == (
        "(hidden, because it contains a credential)"
    )
    assert secrets("another-secret").scrub(Result(error_body=body)).error_body == body


def test_an_error_body_is_cut_only_when_it_is_known_to_have_no_secret():
    body = "x" * 990 + "a-long-secret"
    assert secrets("a-long-secret").scrub(Result(error_body=body)).error_body.startswith("(hidden")
    assert secrets().scrub(Result(error_body=body)).error_body == body[:1000]


def test_a_placeholder_is_found_and_its_member_can_be_left_out():
    value = {
        "a": "x ******** y",
        "b": {"c": ["VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"], "d": 1},
        "e********": 2,
        "f": [],
    }
    assert holds_placeholder(value)
    assert without_placeholders(value) == {"b": {"d": 1}, "f": []}
    assert without_placeholders({"a": [1, "*"]}) == {"a": [1, "*"]}


def test_a_secret_that_is_no_utf_8_is_masked_all_the_same():
    """As a variable of the environment may hold one."""
    assert secrets("secret/\udcffb").scrub({"a": ["secret/\udcffb"]}) == {"a": ["********"]}


def test_a_word_is_masked_as_a_whole_if_a_credential_is_escaped_in_it():
    known = secrets("a+b&c<d>'e\"f/g")
    assert known.scrub("said a+b&c<d>'e\"f/g twice") == "said ******** twice"
    assert known.scrub(["said=a%2Bb%26c%3Cd%3E%27e%22f%2Fg no", "other"]) == [
        "******** no",
        "other",
    ]


@given(SECRETS, SECRETS)
def test_basic_credentials_are_recognised_in_both_encodings(user, password):
    raw = base64.b64encode(f"{user}:{password}".encode()).decode()
    encoded = base64.b64encode(f"{quote_plus(user)}:{quote_plus(password)}".encode()).decode()
    assert basic(user, password) == {raw.rstrip("="), encoded.rstrip("=")}


@pytest.mark.parametrize(
    ("url", "passwords"),
    [
        ("ledger.db", set()),
        ("postgresql://host/db", set()),
        ("postgresql://user:@host/db", set()),
        ("postgresql://user:p%3ass@host:5432/db?sslmode=require", {"p%3ass", "p:ss"}),
        ("postgres:///db?user=u&password=p%40ss", {"p@ss", "p%40ss"}),
        ("postgresql://user:secret@[::1/db", {"secret"}),
        ("postgresql://me:pa/s@s#?x@host/db", {"pa/s@s#?x"}),
        ("postgresql://h/db?password=one&sslpassword=two&password=three", {"one", "two", "three"}),
    ],
)
def test_the_credentials_in_a_url_are_found(url, passwords):
    assert credentials_in_url(url) >= passwords
    assert bool(credentials_in_url(url)) is bool(passwords)


def test_masking_goes_into_numbers_keys_and_the_longest_secret_first():
    known = secrets("12345678", "12345678-long")
    value = {"12345678": [12345678, 912345678, 1.5, True, None], "a": "x 12345678-long y"}
    assert known.scrub(value) == {
        "********": ["********", "********", 1.5, True, None],
        "a": "x ******** y",
    }
