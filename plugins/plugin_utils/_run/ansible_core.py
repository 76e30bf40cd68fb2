# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every private part of ansible-core that runs on the controller, each with its reason."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Callable, Iterator, TypeVar

import ansible.template
from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleUndefinedVariable
from ansible.inventory.data import InventoryData
from ansible.module_utils.common import json as core_json
from ansible.playbook.block import Block
from ansible.plugins.action import ActionBase
from ansible.plugins.connection import ConnectionBase
from ansible.plugins.loader import callback_loader
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

from ...module_utils._result import Returned
from .worker import require_parent

_Data = TypeVar("_Data")

# Since ansible-core 2.19 a string is never templated unless it is marked as trusted.
_trust = getattr(ansible.template, "trust_as_template", None)

# Since ansible-core 2.21 a setting decides whether a result has `invocation`; before, every result
# had it.
_INVOCATION = "INJECT_INVOCATION"

# The option of ssh, and of plugins made like it: how often a command is run again after its
# connection was lost.
_RETRIES = "reconnection_retries"

# Callbacks that print lines; most others of that kind inherit from one of them.
_PRINT_LINES = {f"ansible.plugins.callback.{name}" for name in ("default", "minimal", "oneline")}

_PYTHON_TOO_OLD = re.compile("(?:Ansible|ansible-core) requires .*Python.* Current version: ")


def setting(name: str) -> Any:
    """Return a setting of ansible-core as this run reads it."""
    return vars(constants)[name]


@cache
def prints_lines() -> bool:
    """Return whether the callback of this run prints lines, like those of ansible-core."""
    callback = callback_loader.get(setting("DEFAULT_STDOUT_CALLBACK"), class_only=True)
    return bool({base.__module__ for base in getattr(callback, "__mro__", ())} & _PRINT_LINES)


def run_directory() -> str:
    """Return the temporary directory of this run alone, which Ansible removes at the end."""
    return str(setting("DEFAULT_LOCAL_TMP"))


def run_id() -> str:
    """Return the unique id of this run, the same in all its workers."""
    return os.path.basename(run_directory()).removeprefix("ansible-local-")


def call_first_display(method: str, *arguments: object) -> bool:
    """Have the process that started this worker call a method of its display.

    Return False, and call nothing, in any process but a worker.
    """
    queue = Display()._final_q
    if queue:
        queue.send_display(method, *arguments)
    return bool(queue)


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
    if "{" in data or "(" in data or data.startswith("#"):
        return untrusted(data)
    return data if _trust is None else _trust(data)


def taken_names(inventory: InventoryData) -> set[str]:
    """Return the names of the groups, and of the hosts that Ansible adds implicitly."""
    return {*inventory.groups, *constants.LOCALHOST}


def host_variables(inventory: InventoryData, name: str) -> dict[str, Any]:
    """Return the variables of a host, which can be changed; add the host if it is missing.

    The inventory's own method searches each value for templates to trust.
    """
    inventory.add_host(name)
    variables: dict[str, Any] = inventory.hosts[name].vars
    return variables


def wants_invocation(task_vars: dict[str, Any]) -> bool:
    """Return whether results of this ansible-core have `invocation`."""
    if _INVOCATION not in constants.config.get_configuration_definitions():
        return True
    return bool(constants.config.get_config_value(_INVOCATION, variables=task_vars))


def keep_from_shell(connection: ConnectionBase, prefix: str) -> None:
    """Keep the values of variables with this prefix out of all commands on this connection.

    Users of the target can see its command lines, and `-vvv` shows them. The shell plugin makes them
    for the module and for ansible-core's own polling of its job. A variable that the task empties
    stays, because the module must not find the value that the target has for it.
    """
    shell: Any = connection._shell
    # The items of a loop share a connection.
    if "env_prefix" not in vars(shell):
        shell.env_prefix = partial(_prefix_without, shell.env_prefix, prefix)


def _prefix_without(env_prefix: Callable[..., str], prefix: str, **variables: object) -> str:
    kept = {
        name: value
        for name, value in variables.items()
        if not name.startswith(prefix) or str(value) == ""
    }
    return env_prefix(**kept)


def is_python_too_old(result: Returned) -> bool:
    """Return whether ansible-core refused the target's Python, which it does before the module."""
    return bool(_PYTHON_TOO_OLD.match(str(result.get("msg"))))


def why_failed(result: Returned) -> str:
    """Return why a module failed, as ansible-core has it; since 2.19 perhaps in `exception` only."""
    if result.get("msg"):
        return str(result["msg"])
    reasons = []
    event = getattr(result.get("exception"), "event", None)
    while event:
        reasons.append(event.msg.rstrip("."))
        event = event.chain and event.chain.event
    return ": ".join(reasons) or "it said nothing"


@contextmanager
def running_once(connection: ConnectionBase) -> Iterator[None]:
    """Keep the connection from running a command of the context again after it was lost."""
    try:
        retries = connection.get_option(_RETRIES)
    except KeyError:  # the plugin never runs a command again
        yield
        return
    try:
        connection.set_option(_RETRIES, 0)
        if hasattr(connection, "_bare_run"):
            connection._bare_run = _once(connection._bare_run)
        yield
    finally:
        connection.set_option(_RETRIES, retries)
        vars(connection).pop("_bare_run", None)


def _once(run: Callable[..., object]) -> Callable[..., object]:
    """Return a function that runs a command of ssh once, then raises AnsibleConnectionFailure.

    After a broken master connection (ControlPersist), the plugin ignores its option and runs a
    command again. But ssh itself then made a connection of its own, on which the command may have
    run.
    """
    left = [run]

    def run_once(*arguments: object, **more: object) -> object:
        if not left:
            raise AnsibleConnectionFailure(
                "the connection was lost, and the module may have run before that"
            )
        return left.pop()(*arguments, **more)

    return run_once


@dataclass(frozen=True)
class Keywords:
    """The keywords of a task as they are in effect for a host."""

    check_mode: bool
    diff: bool
    no_log: bool
    is_async: bool
    # Whether Ansible may repeat the task, and counts in `attempts`.
    counts_attempts: bool
    timeout: int | None  # seconds
    becomes: bool  # whether the task changes to another user
    is_local: bool  # whether the connection leads to this machine


class TaskAction(ActionBase):
    """An action plugin that names the parts of its task and runs its module.

    It knows whether the connection got the command of the module itself. Everything before that
    (interpreter discovery, temporary directory, transfer, permissions) runs as the user of the
    connection; only the module runs as the user that the task becomes (`sudoable`).
    """

    _supports_async = True
    _supports_check_mode = True
    task: object  # the same for all attempts of `until`
    arguments: dict[str, Any]  # the options as the task gives them
    task_vars: dict[str, Any]
    playbook_directory: str
    module_was_started = False

    @property
    def creates(self) -> bool:
        """Whether the module sends a request that must not be sent twice."""
        return False

    @cached_property
    def keywords(self) -> Keywords:
        task = self._task
        connection = self._connection
        return Keywords(
            check_mode=task.check_mode,
            diff=task.diff,
            no_log=task.no_log,
            is_async=bool(task.async_val),
            counts_attempts=bool(task.until) or task.retries is not None,
            timeout=task.timeout,
            becomes=bool(connection.become),
            is_local=connection.transport == "local",
        )

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> Returned:
        """Note what the task is given."""
        self.task = self._task
        self.arguments = self._task.args
        self.task_vars = task_vars or {}
        self.playbook_directory = str(self._loader.get_basedir())
        return dict(ActionBase.run(self, tmp, task_vars))

    @property
    def module(self) -> str:
        """The name of the module in the task."""
        return str(self._task.action)

    @property
    def screen_width(self) -> int:
        """The width of the screen in characters."""
        display: Any = self._display
        return int(display.columns)

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

    def template(self, value: Any, variables: dict[str, Any]) -> Any:
        """Return a value, templated with the variables of any host, None if one is undefined."""
        try:
            return ansible.template.Templar(self._loader, variables).template(value)
        except AnsibleUndefinedVariable:
            return None

    def environment_keyword(self) -> dict[str, str]:
        """Return the keyword `environment`, templated and merged."""
        environment: dict[object, object] = {}
        if any(self._task.environment or ()):
            ActionBase._compute_environment_string(self, environment)
        return {str(name): str(value) for name, value in environment.items()}

    def variables_given(self) -> set[str]:
        """Return the names of variables of the command line, of the play and of `import_playbook`."""
        block: Any = self._task
        while not isinstance(block, Block):
            block = block._parent
        return {*load_extra_vars(self._loader), *block._play.vars}

    def _low_level_execute_command(
        self, cmd: str, sudoable: bool = True, *arguments: Any, **more: Any
    ) -> Returned:
        """Run a command on the target; raise ServicesError instead of the module in an orphan."""
        run = partial(super()._low_level_execute_command, cmd, sudoable, *arguments, **more)
        if not sudoable:
            return dict(run())
        require_parent()
        self.module_was_started = True
        with running_once(self._connection) if self.creates else nullcontext():
            return dict(run())

    def run_shell(self) -> Returned:
        """Run a no-op in a shell on the target, as the user of the module; return `rc` and output.

        This finds an unreachable host, or a user that it cannot become, provably before the module
        starts.
        """
        return dict(ActionBase._low_level_execute_command(self, "exit 0"))

    def _remove_tmp_path(self, tmp_path: str | None, force: bool = False) -> None:
        """Remove the temporary directory; the result counts even if the connection is lost now."""
        try:
            ActionBase._remove_tmp_path(self, tmp_path, force)
        except AnsibleConnectionFailure:
            self._connection._shell.tmpdir = None

    def keep_from_shell(self, prefix: str) -> None:
        """Keep variables with this prefix out of all commands of the task on the target."""
        keep_from_shell(self._connection, prefix)

    def run_module(self, arguments: dict[str, Any]) -> Returned:
        """Run the module with these arguments, which are modified, and return its result."""
        wrap_async = self.keywords.is_async and not self._connection.has_native_async
        result = self._execute_module(
            module_args=arguments, task_vars=self.task_vars, wrap_async=wrap_async
        )
        if not wrap_async:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return dict(result)
