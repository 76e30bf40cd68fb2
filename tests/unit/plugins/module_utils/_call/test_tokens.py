"""Which tokens can be sent."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils._call.tokens import TOKEN
from hypothesis import given
from hypothesis import strategies as st


@given(st.text())
def test_a_usable_token_fits_into_a_header(token):
    fits = token != "" and token.isascii() and token.isprintable() and " " not in token
    assert bool(TOKEN.fullmatch(token)) == fits
