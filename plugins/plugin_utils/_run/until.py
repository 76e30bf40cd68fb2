# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keyword `until`: a creation that may have happened is not repeated.

Ansible makes a new action for each attempt, but the task object stays the same.
"""

from __future__ import annotations

from typing import Any

from ...module_utils._call.operation import effect_of
from ...module_utils._errors import ACCEPTED, NOT_SENT, REJECTED, UNKNOWN
from . import core
from .target import asset_named, no_result

_JOB = "ansible_job_id"  # in the result when a module was started with async
_WHY = "This attempt sent nothing: the keyword until does not repeat a creation that may have happened."
# The last task of this process that may have created an asset, and its result.
_last: dict[str, Any] = {"task": None, "result": {}}


def remember(action, result: dict) -> dict:
    """Return the result; keep that of a creation that may have happened, for further attempts."""
    if action.spec.resource.operation.method == "POST" and result["outcome"] in (UNKNOWN, ACCEPTED):
        _last.update(task=action._task, result=dict(result))
    return result


def keep(action, result: dict) -> dict:
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
    if _JOB in result and action._task.poll:
        result = _ended_job(action, core.last_result(action))
        _last.update(task=action._task, result=result)
    if result.get("failed"):
        return dict(result, msg=f"{_WHY} The earlier attempt: {result['msg']}")
    return dict(result, warnings=[*result.get("warnings", []), _WHY]) if result else {}


def _ended_job(action, polled: Any) -> dict:
    """Return what to keep of an earlier attempt with async, whose job ansible-core has polled and removed.

    `polled`: its result, as the task registers it. It is kept as a failure, which is not polled for a job again.
    """
    polled = polled if isinstance(polled, dict) else {}
    if polled.get("outcome") in (NOT_SENT, REJECTED):
        return {}
    if "outcome" not in polled:
        error = polled.get("msg", "the async job was not awaited")
        return dict(no_result(action, error, action._task.args, UNKNOWN), failed=True)
    effect = effect_of(action.spec.resource.operation, polled["outcome"])
    kept = {name: value for name, value in polled.items() if name != _JOB}
    return {"msg": f"{asset_named(action.spec, action._task.args)}: {effect}", **kept, "failed": True}
