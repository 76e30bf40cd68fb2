# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages about failures and messages match the code."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils import _errors
from ansible_collections.infrastructure.services.plugins.module_utils._call import policy
from ansible_collections.infrastructure.services.plugins.module_utils._call.policy import Event
from tools import docs_failures

PAGE = docs_failures.PAGE.read_text(encoding="utf-8")


def test_the_tables_match_the_code():
    assert docs_failures.BETWEEN.search(PAGE).group() == docs_failures.tables()


def test_every_event_of_the_policy_is_in_a_table():
    shown = {Event[name] for name in docs_failures.EVENTS}
    shown |= {
        policy.meaning(code)[0] for code in {*policy._BY_STATUS, *docs_failures.CLASSES.values()}
    }
    assert shown | {Event.SUCCESS} == set(Event)


def test_every_outcome_has_advice():
    page = (docs_failures.PAGE.parent / "failures.rst").read_text(encoding="utf-8")
    assert [outcome for outcome in _errors.OUTCOMES if f"    * - ``{outcome}``\n" not in page] == []
