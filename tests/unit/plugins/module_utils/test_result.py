"""The keys of a result stand in one place; a result of a module comes back as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._result import (
    LIST,
    REPORT,
    TASK,
    Result,
    keys,
)
from ansible_collections.infrastructure.services.plugins.module_utils._secrets import Secrets
from hypothesis import given
from hypothesis import strategies as st

SECRET = "secret-of-the-tests"
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
NAMES = sorted({*keys(TASK), "rc", "_ansible_parsed"} - {"outcome", "changed"})
RETURNED = st.dictionaries(st.sampled_from(NAMES), VALUES)


@pytest.mark.parametrize("key", keys())
def test_a_key_is_masked_and_kept_as_it_says(key):
    """Whatever reads results asks the dataclass, so that one line adds a key."""
    value = {"msg": Message(SECRET), "error_body": SECRET}.get(key, (SECRET,))
    result = replace(Result(), **{key: value})
    assert (Secrets([SECRET]).scrub(result) == result) is (key in ("outcome", "plan"))
    assert (key in result.present(LIST)) is (key in keys(LIST))
    assert (key in result.present(REPORT)) is (key in keys(REPORT))


@given(RETURNED)
def test_a_result_of_a_module_comes_back_as_it_was(returned):
    again = Result.from_ansible(returned).as_ansible()
    assert {name: again[name] for name in returned} == returned
    assert again.keys() - returned.keys() <= {"changed", "outcome", "status"}
