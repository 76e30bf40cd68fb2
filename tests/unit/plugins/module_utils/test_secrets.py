# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every form in which a secret may come back is known."""

from __future__ import annotations

import base64
import json
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import basic, forms, password_in
from ansible_collections.infrastructure.services.plugins.module_utils._task.task import presentable
from hypothesis import given, settings
from hypothesis import strategies as st

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
SPECIAL = ["plain-secret", "quo'te\"d", "sla/sh", "per%cent", "line\nend", "caf\u00e9", "back\\slash", "sp ace+plus"]
# What displays and servers make of a text.
SHOWN = {
    "raw": lambda text: text,
    "quoted": lambda text: quote(text, safe=""),
    "quoted but slashes": quote,
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json in UTF-8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "json of repr": lambda text: json.dumps(repr(text)[1:-1])[1:-1],
}


@settings(deadline=None)
@given(SECRETS)
def test_each_form_is_known(secret):
    assert {show(secret) for show in SHOWN.values()} <= forms(secret)


@settings(deadline=None)
@given(SECRETS)
def test_a_form_that_a_form_body_has_is_known(secret):
    sent = urlencode({"client_secret": secret})
    assert sent.partition("=")[2] in forms(secret)
    assert dict(parse_qsl(sent, keep_blank_values=True)) == {"client_secret": secret}


@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("secret", SPECIAL)
def test_each_form_is_scrubbed_from_values_and_from_keys(secret, show):
    shown = show(secret)
    keys = {f"key {shown}": [{"deep": shown}], f"_ansible_{shown}": 1, shown: [{shown: 2}]}
    result = {"msg": f"it said {shown}.", "asset": keys, "changed": True}
    scrubbed = presentable(result, forms(secret), diff_mode=True, verbosity=3)
    assert shown not in repr(scrubbed)
    assert shown not in str(list(scrubbed["asset"]))
    assert scrubbed["changed"] is True


def test_nothing_is_a_form_of_an_empty_secret():
    assert forms("") == set()


@settings(deadline=None)
@given(SECRETS)
def test_no_form_is_empty(secret):
    assert "" not in forms(secret)


@settings(deadline=None)
@given(SECRETS, SECRETS)
def test_basic_credentials_are_known_in_both_encodings(user, password):
    raw = base64.b64encode(f"{user}:{password}".encode()).decode()
    encoded = base64.b64encode(f"{quote_plus(user)}:{quote_plus(password)}".encode()).decode()
    assert basic(user, password) == {raw, encoded}


def test_the_own_keys_of_a_result_stay_whatever_the_secret_is():
    scrubbed = presentable({"msg": "no", "asset": {"msg": "m"}}, forms("msg"), diff_mode=True, verbosity=3)
    assert set(scrubbed) == {"msg", "asset"}
    assert "msg" not in scrubbed["asset"]


@pytest.mark.parametrize(("url", "passwords"), [
    ("ledger.db", set()),
    ("/a:b@c/ledger.db", set()),
    ("postgresql://host/db", set()),
    ("postgresql://user@host/db", set()),
    ("postgresql://user:@host/db", set()),
    ("postgresql://user:p%3ass@host:5432/db?sslmode=require", {"p%3ass", "p:ss", "p%3Ass"}),
    ("postgres:///db?user=u&password=p%40ss", {"p@ss", "p%40ss"}),
    ("postgresql://user:secret@[::1/db", {"secret"}),
    ("postgresql://me:pa/s@s#?x@host/db", {"pa/s@s#?x"}),
    ("postgresql://h/db?password=one&sslpassword=two&password=three", {"one", "two", "three"}),
    ("host=h password='it is' user=x", {"it is"}),
    ("host=h password = plain user=x", {"plain"}),
])
def test_the_password_in_a_url_is_found(url, passwords):
    assert password_in(url) >= passwords
    assert bool(password_in(url)) is bool(passwords)
