# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of a result stand in one place; a result of a module comes back as it was."""

from __future__ import annotations

import ast
from dataclasses import fields, replace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._result import (
    LIST,
    MASKING,
    NEVER,
    REPORT,
    SCREEN,
    Result,
    keys,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import Asset
from hypothesis import given
from hypothesis import strategies as st
from support.checkout import CHECKOUT

SECRET = "secret-of-the-tests"
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
NAMES = sorted({*keys(), "rc", "_ansible_parsed"} - {"outcome", "changed"})
RETURNED = st.dictionaries(st.sampled_from(NAMES), VALUES)
SOURCES = [
    path.relative_to(CHECKOUT).as_posix() for path in CHECKOUT.glob("plugins/*_utils/**/*.py")
]


def test_each_key_says_how_it_is_masked_and_where_it_is_shown():
    assert [*MASKING, "more"] == [field.name for field in fields(Result)]
    assert set(keys(LIST)).isdisjoint(keys(SCREEN))
    assert set(keys(REPORT)) <= set(keys(LIST, SCREEN))
    assert set(keys(REPORT)) <= {field.name for field in fields(Asset)}


@pytest.mark.parametrize("key", keys())
def test_a_key_is_masked_and_kept_as_it_says(key):
    """Whatever reads results asks the dataclass, so that one line adds a key."""
    value = Message(SECRET) if key == "msg" else (SECRET,)
    result = replace(Result(), **{key: value})
    masked = Secrets(None, [(SECRET, ())]).scrub(result)
    assert (masked == result) is (MASKING[key] == NEVER)
    assert (key in result.present(LIST)) is (key in keys(LIST))
    assert (key in result.without(REPORT).present()) is (key not in keys(REPORT))


@pytest.mark.parametrize("file", sorted(set(SOURCES) - {"plugins/module_utils/_result.py"}))
def test_no_other_file_lists_the_keys(file):
    tree = ast.parse((CHECKOUT / file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            named = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            assert len(set(named) & set(keys())) < 3, named


@given(RETURNED)
def test_a_result_of_a_module_comes_back_as_it_was(returned):
    again = Result.from_ansible(returned).as_ansible()
    assert {name: again[name] for name in returned} == returned
    assert again.keys() - returned.keys() <= {"changed", "outcome", "status"}


def test_without_any_key_nothing_has_happened():
    known = {name: value for name, value in vars(Result()).items() if value}
    assert known == {"outcome": "not_sent", "msg": Message("")}


def test_what_is_learned_later_wins_over_what_the_module_returned():
    result = Result.from_ansible({"changed": False, "failed": False, "msg": ""})
    result = replace(result, changed=True, failed=True, msg=Message("lost"))
    assert result.as_ansible() == {
        "changed": True,
        "failed": True,
        "msg": "lost",
        "outcome": "not_sent",
    }
