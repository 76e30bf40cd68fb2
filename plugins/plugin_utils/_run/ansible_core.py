# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every private part of ansible-core that runs on the controller, each with its reason."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache, partial
from typing import Any, Iterator, TypeVar

import ansible.template
from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.common import json as core_json
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import callback_loader
from ansible.utils.display import Display

from ...module_utils._result import Returned
from .workers import require_parent

_Data = TypeVar("_Data")

# Whether the output is for a terminal, as known before the fork: a worker has none.
IS_TERMINAL = os.isatty(1)

# Since ansible-core 2.19 a string is never templated unless it is marked as trusted.
_trust = getattr(ansible.template, "trust_as_template", None)

# The option of ssh, and of plugins made like it: how often a command is run again after its
# connection was lost.
_RETRIES = "reconnection_retries"

# The callback that prints lines, from which others of that kind inherit.
_PRINTS_LINES = "ansible.plugins.callback.default"

_PYTHON_TOO_OLD = re.compile("(?:Ansible|ansible-core) requires .*Python.* Current version: ")


def setting(name: str) -> Any:
    """Return a setting of ansible-core as this run reads it."""
    return vars(constants)[name]


@cache
def prints_lines() -> bool:
    """Return whether the callback of this run prints lines, like that of ansible-playbook."""
    callback = callback_loader.get(setting("DEFAULT_STDOUT_CALLBACK"), class_only=True)
    return _PRINTS_LINES in {base.__module__ for base in getattr(callback, "__mro__", ())}


def run_id() -> str:
    """Return the unique id of this run, the same in all its workers: its temporary directory."""
    return os.path.basename(str(setting("DEFAULT_LOCAL_TMP"))).removeprefix("ansible-local-")


def screen_width() -> int:
    """Return the width of the screen in characters."""
    display: Any = Display()
    return int(display.columns)


def untrusted(data: _Data) -> _Data:
    """Return data whose strings are never templated."""
    if _trust is not None:
        return data
    from ansible.utils.unsafe_proxy import wrap_var  # noqa: PLC0415 (deprecated since it does nothing)

    wrapped: _Data = wrap_var(data)
    return wrapped


def inventory_data(data: Any) -> Any:
    """Return data whose strings are never templated or called, as plain JSON where possible.

    `ansible-inventory` prints any other string as an object, which AWX takes for the value. A brace
    begins a template; at the start of a string, `#jinja2:` sets other delimiters.
    `when: "{{ name }}"` evaluates the value of the variable as an expression: one without a
    parenthesis calls nothing, neither a lookup nor a method.
    """
    if isinstance(data, dict):
        return {inventory_data(key): inventory_data(value) for key, value in data.items()}
    if isinstance(data, list):
        return [inventory_data(item) for item in data]
    if not isinstance(data, str):
        return data
    return _inventory_text(data)


@lru_cache(10_000)  # such an object takes 0.5 kB, and the names of fields are those of each host
def _inventory_text(text: str) -> str:
    if "{" in text or "(" in text or text.startswith("#"):
        return untrusted(text)
    return text if _trust is None else _trust(text)


def is_python_too_old(result: Returned) -> bool:
    """Return whether ansible-core refused the target's Python, which it does before the module."""
    return bool(_PYTHON_TOO_OLD.match(str(result.get("msg"))))


def why_failed(result: Returned) -> str:
    """Return why a module failed, as ansible-core has it; since 2.19 perhaps in `exception` only."""
    event = getattr(result.get("exception"), "event", None)
    return str(result.get("msg") or getattr(event, "msg", "it said nothing"))


@contextmanager
def running_once(connection: Any) -> Iterator[None]:
    """Keep the connection from running a command of the context again after it was lost.

    After a broken master connection (ControlPersist), ssh ignores its option and runs a command
    again. But ssh itself then made a connection of its own, on which the command may have run.
    """
    try:
        retries = connection.get_option(_RETRIES)
    except KeyError:  # the plugin never runs a command again
        yield
        return
    left = [connection._bare_run] if hasattr(connection, "_bare_run") else []

    def run_once(*arguments: object, **more: object) -> object:
        if not left:
            raise AnsibleConnectionFailure(
                "the connection was lost, and the module may have run before that"
            )
        return left.pop()(*arguments, **more)

    try:
        connection.set_option(_RETRIES, 0)
        if left:
            connection._bare_run = run_once
        yield
    finally:
        connection.set_option(_RETRIES, retries)
        vars(connection).pop("_bare_run", None)


class TaskAction(ActionBase):
    """An action plugin that names the parts of its task and runs its module.

    It knows whether the connection got the command of the module itself. Everything before that
    (interpreter discovery, temporary directory, transfer, permissions) runs as the user of the
    connection; only the module runs as the user that the task becomes (`sudoable`).
    """

    _supports_async = True
    _supports_check_mode = True
    task_vars: dict[str, Any]
    creates = False  # whether the module sends a request that must not be sent twice
    module_was_started = False

    @property
    def task(self) -> Any:
        """The keywords of the task, and its arguments."""
        return self._task

    @property
    def is_local(self) -> bool:
        """Whether the connection leads to this machine."""
        return bool(self._connection.transport == "local")

    def all_given(self) -> Any:
        """Return the options as a module gets them; raise TypeError or ValueError if it cannot."""
        make_encoder = getattr(core_json, "get_module_encoder", None)
        if make_encoder is not None:  # since ansible-core 2.19
            encoder = make_encoder("legacy", core_json.Direction.CONTROLLER_TO_MODULE)()
        else:
            legacy: Any = core_json.AnsibleJSONEncoder
            encoder = legacy(vault_to_text=True)
        return json.loads(encoder.encode(self._task.args))

    def variable(self, name: str) -> Any:
        """Return a variable of the task, templated, None if there is none."""
        return self._templar.template(self.task_vars.get(name))

    def role_parameters(self) -> Any:
        """Return the parameters of the task's role, where a play lists it, by their names."""
        return self._task._role.get_role_params()

    def environment_keyword(self) -> dict[str, str]:
        """Return the keyword `environment`, templated and merged."""
        environment: dict[object, object] = {}
        ActionBase._compute_environment_string(self, environment)
        return {str(name): str(value) for name, value in environment.items()}

    def _low_level_execute_command(
        self, cmd: str, sudoable: bool = True, *arguments: Any, **more: Any
    ) -> Returned:
        """Run a command on the target; if it is the module, once, and not in an orphan."""
        run = partial(super()._low_level_execute_command, cmd, sudoable, *arguments, **more)
        if not sudoable:
            return dict(run())
        require_parent()
        self.module_was_started = True
        with running_once(self._connection) if self.creates else nullcontext():
            return dict(run())

    def run_shell(self) -> Returned:
        """Do nothing in a shell on the target, as the user of the module; return `rc` and output.

        This finds an unreachable host, or a user that it cannot become, provably before the module
        starts.
        """
        return dict(ActionBase._low_level_execute_command(self, ":"))

    def _remove_tmp_path(self, tmp_path: str | None, force: bool = False) -> None:
        """Remove the temporary directory; the result counts even if the connection is lost now."""
        try:
            ActionBase._remove_tmp_path(self, tmp_path, force)
        except AnsibleConnectionFailure:
            self._connection._shell.tmpdir = None

    def keep_from_shell(self, prefix: str) -> None:
        """Keep the values of variables with this prefix out of all commands on the target.

        Users of the target can see its command lines, and `-vvv` shows them. The shell plugin makes
        them for the module and for ansible-core's own polling of its job. A variable that the task
        empties stays, because the module must not find the value that the target has for it.
        """
        shell: Any = self._connection._shell
        if "env_prefix" in vars(shell):  # the items of a loop share a connection
            return
        env_prefix = shell.env_prefix

        def without(**variables: object) -> str:
            kept = {
                name: value
                for name, value in variables.items()
                if not name.startswith(prefix) or str(value) == ""
            }
            return str(env_prefix(**kept))

        shell.env_prefix = without

    def run_module(self, arguments: dict[str, Any]) -> Returned:
        """Run the module with these arguments, which are modified, and return its result."""
        wrap_async = bool(self._task.async_val)
        result = self._execute_module(
            module_args=arguments, task_vars=self.task_vars, wrap_async=wrap_async
        )
        if not wrap_async:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        # AnsibleModule adds it, and knows none of the options.
        return {name: value for name, value in result.items() if name != "invocation"}
