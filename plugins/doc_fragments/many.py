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
      - How many requests may run at the same time, from V(1) to V(256). The task starts with fewer, and reduces them
        while the service is overloaded.
      - If not given, E(INFRASTRUCTURE_SERVICES_CONCURRENCY) is used.
    type: int
    default: 10
  max_unknown:
    description:
      - After this many unknown outcomes the task starts no further item. V(0) means no limit, but the task still ends
        when no request succeeds any more.
      - A machine that was accepted without a usable answer counts for O(max_failures) only.
    type: int
    default: 1
  max_failures:
    description:
      - After this many failed items the task starts no further one. V(0) means no limit.
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
      - V(all) returns every item in RV(results). V(problems) returns those that failed, are in doubt, differ from the
        ledger, or were not started.
    type: str
    choices:
      - all
      - problems
    default: all
  defaults:
    description:
      - Merged into each item, attributes included. The values of an item win, unless they are null.
    type: dict
  in_doubt:
    description:
      - What to do with assets that O(ledger) has in doubt. V(fail) fails them, and V(skip) leaves them alone; both
        process the others. V(stop) fails them and starts no item.
      - An asset that another run is working on is not in doubt. The task waits for it.
    type: str
    choices:
      - fail
      - skip
      - stop
    default: fail
  report:
    description:
      - A file on the controller for the result of each asset, such as V(fleet.json). C(fleet.xml) beside it is JUnit
        XML, and C(fleet.html) a page.
      - In check mode the task writes the plan instead, as C(fleet.plan.json), C(fleet.plan.html) and, for a merge
        request, C(fleet.plan.md).
      - The first task of a run replaces the files of the run before, whose JSON file becomes C(fleet.previous.json).
        Later tasks add to them. Any other file is refused.
      - Only the user of the task can read the files.
      - The task writes them when it ends, also when a signal ends it. After C(kill -9), the option C(run) of
        M(infrastructure.services.ledger_info) lists what O(ledger) has.
      - A relative path, also of O(approved), lies below the working directory.
      - All lists of one report have the same service and ledger.
    type: path
  approved:
    description:
      - The plan that was approved, a file on the controller that O(report) wrote in check mode as C(fleet.plan.json).
      - Unless each asset to send or adopt is in this plan with the same body, nothing is sent, and the message names
        the others with the fields that differ and both values. It needs O(ledger); what that has already needs no
        approval.
      - A file that is no plan, or one for another service, is refused, also in check mode.
    type: path
notes:
  - On C(Ctrl-C), C(SIGTERM) and the keyword C(timeout) the task starts no further item. Running requests have ten
    seconds to finish; after that they are in doubt.
"""
