# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keyword `until`: a creation that may have happened is not repeated.

Ansible makes a new action for each attempt, but the task object stays the same.
"""

from __future__ import annotations

from typing import Any

from ...module_utils._errors import ACCEPTED, UNKNOWN, InvalidInput
from . import core

_WHY = "This attempt sent nothing: the keyword until does not repeat a creation that may have happened."
# The last task of this process that may have created an asset, and its result.
_last: dict[str, Any] = {"task": None, "result": {}}


def refuse_async(action) -> None:
    """Raise InvalidInput for a creation that would be repeated without knowing how the job before it ended."""
    if action._task.async_val and action.creates and core.counts_attempts(action):
        raise InvalidInput(
            "async",
            "cannot be combined with until or retries in a task that creates, since an attempt does not know how the"
            " job of the one before it ended. Nothing was sent. Remove async, or until and retries",
        )


def remember(action, result: dict) -> dict:
    """Return the result; keep that of a creation that may have happened, for further attempts."""
    if action.creates and result["outcome"] in (UNKNOWN, ACCEPTED):
        _last.update(task=action._task, result=dict(result))
    return result


def update(action, result: dict) -> dict:
    """Return the result; keep it as the ledger and the keyword timeout left it, if it was remembered."""
    if remembered(action):
        _last.update(result=dict(result))
    return result


def remembered(action) -> dict:
    """Return the result of an attempt of the task that may have created the asset, empty for none."""
    return _last["result"] if _last["task"] is action._task else {}


def earlier(action) -> dict:
    """Return the result for a task that an earlier attempt may have carried out, empty for one to run."""
    result = remembered(action)
    if result.get("failed"):
        return dict(result, msg=f"{_WHY} The earlier attempt: {result['msg']}")
    return dict(result, warnings=[*result.get("warnings", []), _WHY]) if result else {}
