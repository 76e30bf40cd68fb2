"""Results of tasks and lists, from what a test says of them."""

from __future__ import annotations

from ansible_collections.infrastructure.services.plugins.module_utils._errors import Message
from ansible_collections.infrastructure.services.plugins.module_utils._result import Result


def result_from(told: dict) -> Result:
    """Return the result with these keys; `results`: those of the assets of a list."""
    known = {name: tuple(it) if isinstance(it, list) else it for name, it in told.items()}
    if "results" in told:
        known["results"] = tuple(result_from(item) for item in told["results"])
    if isinstance(told.get("msg"), str) and not isinstance(told["msg"], Message):
        known["msg"] = Message(told["msg"])
    return Result(**known)
