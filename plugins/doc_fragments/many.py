# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the options that all modules for a list share."""


class ModuleDocFragment:
    """C(infrastructure.services.many)."""

    DOCUMENTATION = r"""
options:
  concurrency:
    description:
      - How many requests may be in flight at once, from V(1) to V(256). There are fewer at first, and while the
        service is slow or overloaded.
      - If not given, E(INFRASTRUCTURE_SERVICES_CONCURRENCY) is used.
    type: int
    default: 10
  max_unknown:
    description:
      - Once the outcome of this many requests of the task is unknown, no further item is started. V(0) means no limit,
        but the task still ends when nothing gets through any more.
      - A machine that was accepted without a usable answer does not count here, but for O(max_failures).
    type: int
    default: 1
  max_failures:
    description:
      - Once this many items have failed, no further one is started. V(0) means no limit.
    type: int
    default: 0
  asset_fields:
    description:
      - The fields of each asset to return in RV(results) and in the facts, by their dotted names, such as
        V(id), V(name) and V(attributes.ip). If not given, the whole asset is returned, and with an empty list nothing
        of it. O(ledger) always records the whole asset.
      - AWX and ansible-runner drop a result of more than 700,000 characters; a thousand whole assets are longer. With
        V(id) alone and O(results=problems), ten thousand fit.
    type: list
    elements: str
  results:
    description:
      - Which items RV(results) has. V(all), every one. V(problems), those that failed, are in doubt, differ from
        what the ledger has, or were not started; RV(counts) and the facts have the others.
    type: str
    choices:
      - all
      - problems
    default: all
  defaults:
    description:
      - What all items have in common; it is merged into each item, attributes included. The values of an item win,
        unless they are null.
    type: dict
  in_doubt:
    description:
      - What to do when O(ledger) does not know how an earlier task ended for some assets that must not be created
        twice. V(fail), they fail. V(skip), they are left as they are without a failure. Either way the others are
        processed. V(stop), they fail, and no item is started.
      - An asset that another run is working on is not in doubt; the task waits for it.
    type: str
    choices:
      - fail
      - skip
      - stop
    default: fail
  report:
    description:
      - A file on the controller for the result of each asset, as JSON; its name ends in C(.json). Files of the same
        name that end in C(.xml) and C(.html) are JUnit XML and a page.
      - In check mode they are the plan, which never replaces the report of a run. They are called C(fleet.plan.json),
        C(fleet.plan.html) and C(fleet.plan.md), for a merge request, for V(fleet.json).
      - The first task of a run replaces the files of the run before, whose JSON file becomes C(fleet.previous.json);
        later tasks add to them.
      - Only the user of the task can read the files. An existing file must be such a report; any other is refused.
      - They are written when the task ends, also when a signal ends it. After C(kill -9), O(ledger) has the results,
        and the option C(run) of M(infrastructure.services.ledger_info) lists them.
      - A task that is refused before it begins leaves them as they are.
      - A relative path lies below the working directory.
      - All lists of one run and one report have the same service and ledger; another is refused.
    type: path
  approved:
    description:
      - The plan that was approved, a file on the controller that O(report) wrote in check mode as C(fleet.plan.json).
      - Nothing is sent or adopted unless each such asset is in this plan with the same body; all others are named,
        each with the fields that differ and both values. What O(ledger) has already needs no approval.
      - A file that is no plan, or one for another service, is refused, also in check mode.
      - A relative path is resolved as that of O(report).
    type: path
notes:
  - A task that is ended by C(Ctrl-C), C(SIGTERM) or the keyword C(timeout) begins no further item. Requests in flight
    have ten seconds to finish; after that they are in doubt.
  - O(ledger) can be combined with a list only where the task runs on the controller (connection C(local), no
    C(become)).
"""
