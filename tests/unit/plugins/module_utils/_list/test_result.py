# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages about a whole list."""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._errors import (
    ACCEPTED,
    Message,
)
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)

MACHINE = "virtual machine"


@pytest.mark.parametrize(
    ("created", "skipped", "said"),
    [
        (1, 1, "1 was created, 1 was not started: the list stopped."),
        (2, 1, "2 were created, 1 was not started: the list stopped."),
        (1, 2, "1 was created, 2 were not started: the list stopped."),
        (0, 1, "1 was not started: the list stopped."),
    ],
)
def test_verbs_agree_with_their_numbers(created, skipped, said):
    result = ListResult(VIRTUAL_MACHINES, [f"vm{n}" for n in range(created + skipped)], None)
    for number in range(created):
        result.add(number, Result(outcome=ACCEPTED, changed=True, asset={"id": str(number)}))
    for number in range(created, created + skipped):
        result.skip(number, "the list stopped")
    assert result.done("").msg.text.strip() == said


def test_one_warning_too_many_is_one_more_warning():
    result = ListResult(VIRTUAL_MACHINES, [f"vm{n}" for n in range(21)], None)
    for number in range(21):
        warnings = (Message(f"warning {number}", f"{MACHINE} vm{number}"),)
        result.add(number, Result(warnings=warnings))
    assert result.done().warnings[-1] == "And 1 more warning; results has them."


def test_no_message_about_a_list_has_the_line_break_of_a_name():
    result = ListResult(VIRTUAL_MACHINES, ["a\nb", "c\nd", "e\nf"], None)
    warnings = (Message("it came back different", f"{MACHINE} a b"),)
    for number in range(2):
        result.add(number, Result(outcome=ACCEPTED, warnings=warnings, asset={"id": "1"}))
    result.skip(2, "the list stopped")
    result.add(0, Result(outcome="rejected", failed=True, msg=Message("no")))
    done = result.done()
    (_a, _c, skipped) = done.results
    shown = [str(done.msg), *map(str, done.warnings), str(skipped.msg)]
    assert all(each.isprintable() for each in shown)
    assert str(skipped.msg).startswith("virtual machine e f: ")
    assert skipped.item == "e\nf"
