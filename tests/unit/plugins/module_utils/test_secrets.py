# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every form in which a secret may come back is recognised."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

import pytest
from ansible.module_utils.common.parameters import remove_values
from ansible_collections.infrastructure.services.plugins.module_utils import _secrets
from ansible_collections.infrastructure.services.plugins.module_utils._call.place import Place
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import (
    Secrets,
    basic,
    forms,
    holds_placeholder,
    is_credential_name,
    password_in,
    without_placeholders,
)
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import (
    Context,
    presentable,
)
from hypothesis import given
from hypothesis import strategies as st

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
SPECIAL = [
    "plain-secret",
    "quo'te\"d",
    "sla/sh-slash",
    "per%cent",
    "line\nend",
    "caf\u00e9-caf\u00e9",
    "back\\slash",
    "sp ace+plus",
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


@given(SECRETS)
def test_each_form_is_recognised(secret):
    assert {show(secret) for show in SHOWN.values()} <= forms(secret)


@given(SECRETS)
def test_the_form_encoded_variant_is_recognised(secret):
    sent = urlencode({"client_secret": secret})
    assert sent.partition("=")[2] in forms(secret)
    assert dict(parse_qsl(sent, keep_blank_values=True)) == {"client_secret": secret}


def secrets(*credentials: str, public: object = None) -> Secrets:
    known = Secrets(public)
    for credential in credentials:
        known.mask(credential)
    return known


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
    context = Context(False, secrets(secret), Place(), diff_mode=True)
    scrubbed = presentable(result, context).as_ansible()
    assert not [text for text in texts(scrubbed) if shown in text]
    assert scrubbed["changed"] is True


CREDENTIALS = [  # of gateways, identity providers and people
    "Ocp-Apim-Subscription-Key",
    "X-Auth-Key",
    "X-Functions-Key",
    "X-Api-Key",
    "x_api_key",
    "X-APIKey",
    "apikey",
    "Key",
    "DD-APPLICATION-KEY",
    "X-RapidAPI-Key",
    "routing_key",
    "subscriptionKey",
    "X-Auth",
    "X-Auth-Token",
    "X-MyAuth",
    "X-Vault-Token",
    "X-Amz-Security-Token",
    "CF-Access-Client-Secret",
    "CF-Access-Jwt-Assertion",
    "X-JWT",
    "X-Hmac",
    "X-Hub-Signature-256",
    "sig",
    "X-OTP",
    "totp",
    "X-Pin",
    "Cookie",
    "X-Session-Id",
    "passWord",
    "Pass-Phrase",
    "passcode",
    "credentials",
    "client_assertion",
    "refresh_token",
    "secret_id",
    "code",
    "code_verifier",
    "device_code",
    "SAMLResponse",
    "X-Proxy-Authorization",
    "privateKey",
]
ORDINARY = [
    "X-Tenant",
    "X-Request-Id",
    "Idempotency-Key",
    "idempotency_key",
    "X-IdempotencyKey",
    "Sort-Key",
    "partition_key",
    "Surrogate-Key",
    "X-Cache-Key",
    "public_key",
    "author",
    "X-Author",
    "authority",
    ":authority",
    "X-Keyboard",
    "X-Keyspace",
    "key_id",
    "audience",
    "resource",
    "scope",
    "grant_type",
    "client_assertion_type",
    "tokenType",
    "subject_token_type",
    "X-Auth-Email",
    "X-Auth-User",
    "X-Signature-Version",
    "username",
    "signal",
    "X-Spin",
    "X-Country-Code",
    "X-Sidecar",
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


WORDS = [
    "web",
    "web01",
    "accepted",
    "false",
    "403",
    "company01",
    "company01.example.com",
    "any",
    "a",
    "not-there-x",
    "company0",
    "01.example",
    "prod/web-1",
    "prod%2Fweb",
    "a value of more than 32 characters in words",
    "of more than",
]
MACHINE = {
    "id": "company01-0001",
    "name": "company01.example.com",
    "attributes": {
        "team": "web",
        "cpu": 403,
        "path": "prod/web-1",
        "url": "x/prod%2Fweb-1",
        "note": "a value of more than 32 characters in words",
    },
}


@given(st.lists(st.sampled_from(WORDS), max_size=3), st.sampled_from(WORDS))
def test_names_ids_bodies_and_outcomes_are_not_changed(credentials, name):
    """Whatever the credentials are, if the options state the same value openly or they are short."""
    asset = dict(MACHINE, description=name)
    result = Result(
        outcome="accepted",
        changed=True,
        status=403,
        asset=asset,
        request={"url": "https://company01.example.com/x", "body": asset},
        ansible_facts={"m": asset},
        msg=Message("no"),
    )
    scrubbed = secrets(*credentials, public=asset).scrub(result)
    assert scrubbed == replace(result, msg=scrubbed.msg)


@pytest.mark.parametrize(
    ("credential", "said", "shown"),
    [
        ("any", "company01: any token", "company01: ******** token"),
        ("company01", "company01: is company01x", "********: is company01x"),
        ("long-secret", "xlong-secretx", "x********x"),
    ],
)
def test_a_weak_credential_is_masked_in_messages_as_a_whole_word(credential, said, shown):
    known = secrets(credential, public={"name": "company01"})
    scrubbed = known.scrub(Result(msg=Message(said), warnings=(Message(said),)))
    assert scrubbed == Result(msg=Message(shown), warnings=(Message(shown),))
    assert bool(known.warnings()) is (credential != "long-secret")


@pytest.mark.parametrize(("length", "is_weak"), [(7, True), (8, False)])
def test_a_credential_of_eight_characters_is_masked_everywhere(length, is_weak):
    assert bool(secrets("s" * length).warnings()) is is_weak


@pytest.mark.parametrize(("length", "is_weak"), [(31, True), (32, False)])
def test_a_credential_of_32_characters_may_be_part_of_a_longer_public_word(length, is_weak):
    word = "s" * length
    assert bool(secrets(word, public={"name": f"x{word}x"}).warnings()) is is_weak
    assert secrets(word, public={"name": word}).warnings()


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


def test_a_secret_that_is_no_utf_8_has_forms_all_the_same():
    """As a variable of the environment may hold one."""
    assert {"a/\udcffb", "a%2F%3Fb", "a/%3Fb"} <= forms("a/\udcffb")


def test_an_empty_secret_has_no_forms():
    assert forms("") == set()


@given(SECRETS)
def test_no_form_is_empty(secret):
    assert "" not in forms(secret)


@given(SECRETS, SECRETS)
def test_basic_credentials_are_recognised_in_both_encodings(user, password):
    raw = base64.b64encode(f"{user}:{password}".encode()).decode()
    encoded = base64.b64encode(f"{quote_plus(user)}:{quote_plus(password)}".encode()).decode()
    assert basic(user, password) == {raw, encoded, raw.rstrip("="), encoded.rstrip("=")}


def test_the_keys_of_a_result_are_kept_whatever_the_secret_is():
    result = Result(warnings=(Message("w"),), asset={"warnings": "w"})
    scrubbed = presentable(result, Context(False, secrets("warnings"), Place())).as_ansible()
    assert scrubbed["warnings"] == ["w"]
    assert "warnings" not in scrubbed["asset"]


@pytest.mark.parametrize(
    ("url", "passwords"),
    [
        ("ledger.db", set()),
        ("/a:b@c/ledger.db", set()),
        ("postgresql://host/db", set()),
        ("postgresql://user@host/db", set()),
        ("postgresql://user:@host/db", set()),
        ("postgresql://user:p%3ass@host:5432/db?sslmode=require", {"p%3ass", "p:ss"}),
        ("postgres:///db?user=u&password=p%40ss", {"p@ss", "p%40ss"}),
        ("postgresql://user:secret@[::1/db", {"secret"}),
        ("postgresql://me:pa/s@s#?x@host/db", {"pa/s@s#?x"}),
        ("postgresql://h/db?password=one&sslpassword=two&password=three", {"one", "two", "three"}),
        ("host=h password='it is' user=x", {"it is"}),
        ("host=h password = plain user=x", {"plain"}),
    ],
)
def test_the_password_in_a_url_is_found(url, passwords):
    assert password_in(url) >= passwords
    assert bool(password_in(url)) is bool(passwords)


def meanwhile(do) -> threading.Thread:
    """Start a thread that does this, and return it once it has, or waits for us."""
    thread = threading.Thread(target=do)
    thread.start()
    thread.join(0.2)
    return thread


def test_a_secret_that_another_thread_adds_meanwhile_is_not_lost():
    known, threads = secrets(), []

    def derived():
        threads.append(meanwhile(lambda: known.mask("other-secret")))
        yield "derived-secret"

    known.mask("first-secret", derived())
    threads[0].join()
    assert known.scrub_message("other-secret first-secret") == "******** ********"


def test_a_thread_that_adds_a_secret_can_rely_on_it_although_another_is_adding_it_too(monkeypatch):
    known, threads, said = secrets(), [], []

    def second() -> None:
        known.mask("secret-of-both")
        said.append(known.scrub_message("it is secret-of-both"))

    def slow(secret: str) -> frozenset:
        threads.append(None if threads else meanwhile(second))
        return forms(secret)

    monkeypatch.setattr(_secrets, "forms", slow)
    known.mask("secret-of-both")
    threads[0].join()
    assert said == ["it is ********"]


DIGITS = st.text("0123456789:", min_size=8, max_size=10)
LEAVES = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.none())


@given(st.data(), st.sets(DIGITS, min_size=1), LEAVES)
def test_a_value_is_masked_as_ansible_core_masks_it(data, secrets, leaf):
    """Also in the middle of a text, whole, twice, as a number and within another secret."""
    known = Secrets(None, [(secret, ()) for secret in secrets])
    secret = data.draw(st.sampled_from(sorted(secrets)))
    for value in (
        leaf,
        secret,
        int(f"7{secret.replace(':', '1')}"),
        f"{leaf}{secret}{secret}{leaf}",
        secret[1:],
    ):
        assert known._masked(value) == remove_values(value, known._everywhere)
