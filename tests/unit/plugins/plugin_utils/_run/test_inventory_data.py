# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of the data of the inventory no string is ever templated, and those without a template or a call
are plain.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.plugin_utils._run.ansible_core import (
    inventory_data,
    untrusted,
)

try:  # since ansible-core 2.19
    from ansible.template import is_trusted_as_template as is_plain
except ImportError:
    from ansible.utils.unsafe_proxy import AnsibleUnsafe

    def is_plain(text: str) -> bool:
        return not isinstance(text, AnsibleUnsafe)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("192.0.2.1", True),
        ("", True),
        ("a } b % c", True),
        ("web #1", True),
        ("{{ 7 * 7 }}", False),
        ("{% raw %}", False),
        ("{#", False),
        ("a {", False),
        ("#jinja2: variable_start_string: '[%'\n[% 7 %]", False),
        ("lookup('pipe', 'id')", False),
        ("''.join", True),
    ],
)
def test_only_a_string_that_could_hold_a_template_or_a_call_is_marked(text, plain):
    found = inventory_data({text: [text, 4, None, True, {"a": text}]})
    ((key, values),) = found.items()
    assert [is_plain(each) for each in (key, values[0], values[4]["a"])] == [plain] * 3
    assert found == {text: [text, 4, None, True, {"a": text}]} == untrusted(found)
