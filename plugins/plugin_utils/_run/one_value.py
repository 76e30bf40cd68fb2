# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The variables that the playbook create_fleet takes from its first host, for all hosts."""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Iterator, Mapping

from ...module_utils._errors import InvalidInput

Variables = Mapping[str, Any]
Template = Callable[[Any, "dict[str, Any]"], Any]

_NAME = re.compile(r"[^\W\d]\w*")
_UNSET = (None, "")
_MISSING = object()


def require_one_value(task_vars: Variables, names: Iterable[str], template: Template) -> None:
    """Raise InvalidInput for variables whose values differ between hosts of the play.

    `template`: returns a value, templated with the variables of a host.
    """
    differing = [
        f"{name} differs between {one} and {other}."
        for name, one, other in sorted(_differing(task_vars, names, template))
    ]
    if differing:
        advice = (
            "This playbook uses one value for all hosts, so run it once for each group:"
            " -e fleet=GROUP."
        )
        raise InvalidInput(" ".join([*differing, advice]))


def _differing(
    task_vars: Variables, names: Iterable[str], template: Template
) -> Iterator[tuple[str, str, str]]:
    """Yield each variable that differs, with the first host and the first one unlike it."""
    one, *others = task_vars["ansible_play_hosts_all"]
    raw = task_vars["hostvars"].raw_get
    first = raw(one)
    of_play = {name: value for name, value in task_vars.items() if name not in first}
    left = {name: _mentioned(name, first) for name in names}

    def value(name: str, variables: Variables) -> Any:
        found = variables.get(name)
        found = found if found in _UNSET else template(found, {**of_play, **variables})
        return None if found in _UNSET else found

    values = {name: value(name, first) for name in left}
    for other in others:
        variables = raw(other)
        for name, mentioned in [*left.items()]:
            if not _is_same(mentioned, first, variables) and value(name, variables) != values[name]:
                del left[name]
                yield name, one, other


def _is_same(names: Iterable[str], one: Variables, other: Variables) -> bool:
    """Return whether two hosts have the same texts and, as by a group or `-e`, the same objects."""
    pairs = ((one.get(name, _MISSING), other.get(name, _MISSING)) for name in names)
    return all(first is second or _is_text(first, second) for first, second in pairs)


def _is_text(one: Any, other: Any) -> bool:
    return isinstance(one, str) and isinstance(other, str) and one == other


def _mentioned(name: str, variables: Variables) -> set[str]:
    """Return a variable and all that its templates may use, so that few need be templated."""
    found = {name}
    left = [name]
    while left:
        words = _NAME.findall(str(variables.get(left.pop())))
        new = variables.keys() & set(words) - found
        found |= new
        left += new
    return found
