# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the options that the modules for a list share."""

from __future__ import annotations


class ModuleDocFragment:
    """C(infrastructure.services.many)."""

    DOCUMENTATION = r"""
options:
  concurrency:
    description:
      - How many requests may be on their way at once, from V(1) to V(256). There are fewer at first, and when the
        service answers that it is overloaded, or too slowly.
      - If not given, the environment variable E(INFRASTRUCTURE_SERVICES_CONCURRENCY) is used.
    type: int
    default: 10
  max_unknown:
    description:
      - When the outcome of so many requests of this task is unknown, no further item is begun. V(0) means any number;
        but when nothing gets through any more, the task ends all the same.
    type: int
    default: 1
  max_failures:
    description:
      - When so many items have failed, whatever the reason, no further one is begun. V(0) means any number.
    type: int
    default: 0
  asset_fields:
    description:
      - The fields of each asset that come back in RV(results) and RV(ansible_facts), by their dotted names, such as
        V(id), V(name) and V(attributes.ip). If not given, the whole asset does. O(ledger) has all of it in any case.
      - AWX and ansible-runner drop a result of more than 700,000 characters, which a thousand whole assets exceed.
    type: list
    elements: str
  defaults:
    description:
      - What all items have in common; it is merged into each, its attributes included. What an item says itself wins,
        unless it is null. On another host than the controller an option that has a default wins, too.
    type: dict
  in_doubt:
    description:
      - What to do when O(ledger) does not know how an earlier task ended for some assets that must not be created
        twice. V(fail), they fail, and the others are done. V(skip), they are left as they are and are no failure, and
        the others are done. V(stop), they fail, and nothing at all is begun.
      - An asset that another run is at work on is not in doubt; the task waits for it.
    type: str
    choices:
      - fail
      - skip
      - stop
    default: fail
  report:
    description:
      - A file on the controller for what came of each asset, as JSON, and as JUnit XML in a file of the same name that
        ends in C(.xml). Both are replaced, but a task adds to what other tasks of the same run wrote, on any host.
      - A file that is there already must be empty or such a report. Any other, a device and the files of O(ledger) are
        refused, and nothing is sent.
      - They are also written when a signal ends the task. After a crash the next task that writes them adds what
        O(ledger) knows of the run that was killed.
      - A relative path is below the directory of the playbook, or the working directory where the playbook belongs to
        a collection. Nothing is written in check mode.
    type: path
notes:
  - A task that is ended by C(Ctrl-C), C(SIGTERM) or the keyword C(timeout) begins nothing further. What is on its way
    then has ten seconds; what has not ended by then is in doubt.
  - O(ledger) goes with a list only where the task runs on the controller (connection C(local), no C(become)).
"""
