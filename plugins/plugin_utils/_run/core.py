# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What depends on the version of ansible-core, and most of its private parts that are used, each
with the reason.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Callable, Iterator

from ansible import constants
from ansible.errors import AnsibleConnectionFailure
from ansible.playbook.block import Block
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from .process import require_parent

try:  # since ansible-core 2.19
    from ansible.module_utils.common.json import Direction, get_module_encoder

    ENCODER = get_module_encoder(
        "legacy", Direction.CONTROLLER_TO_MODULE
    )  # options as a module would get them

    from ansible.template import trust_as_template as _plain

    def untrusted(data):
        """Return data that is never templated: a string is not, unless it is marked as trusted."""
        return data

except ImportError:
    from ansible.module_utils.common.json import AnsibleJSONEncoder
    from ansible.utils.unsafe_proxy import wrap_var

    ENCODER = partial(AnsibleJSONEncoder, vault_to_text=True)

    def untrusted(data):
        """Return data that is never templated: each of its strings is marked as unsafe."""
        return wrap_var(data)

    def _plain(text):
        return text


def of_inventory(data):
    """Return data of which no string is ever templated or called, and of which those that cannot be
    are plain JSON.

    `ansible-inventory` gives any other string as an object, which AWX takes for the value. A brace
    begins a template; at the start of a string, `#jinja2:` says what else does. `when: "{{ name
    }}"` evaluates what it finds in the variable as an expression: one without a parenthesis calls
    nothing, neither a lookup nor a method.
    """
    if isinstance(data, dict):
        return {of_inventory(key): of_inventory(value) for key, value in data.items()}
    if isinstance(data, list):
        return [of_inventory(item) for item in data]
    if not isinstance(data, str):
        return data
    return untrusted(data) if "{" in data or "(" in data or data.startswith("#") else _plain(data)


# Since ansible-core 2.21 a setting decides whether a result has `invocation`; before, it always
# had.
_INVOCATION = "INJECT_INVOCATION"
_INVOCATION_IS_A_SETTING = _INVOCATION in constants.config.get_configuration_definitions()

# The option of ssh, and of plugins made like it: how often a command is run again after its
# connection was lost.
_RETRIES = "reconnection_retries"

_PYTHON_TOO_OLD = re.compile("(?:Ansible|ansible-core) requires .*Python.* Current version: ")


def wants_invocation(task_vars: dict) -> bool:
    """Return whether the result is to have `invocation`, by the rule of this ansible-core."""
    return not _INVOCATION_IS_A_SETTING or constants.config.get_config_value(
        _INVOCATION, variables=task_vars
    )


def task_environment(action) -> dict[str, str]:
    """Return the task's keyword `environment`, templated and merged: what a module would run with."""
    environment: dict = {}
    if any(action._task.environment or ()):
        action._compute_environment_string(environment)
    return {str(name): str(value) for name, value in environment.items()}


def keep_from_shell(connection, prefix: str) -> None:
    """Have no command on this connection begin with variables whose names start with this prefix.

    Whoever is on the target sees the command lines there, and `-vvv` shows them. The shell plugin
    makes them for the module as well as for ansible-core's own polling of its job.
    """
    shell = connection._shell
    if "env_prefix" not in vars(shell):  # the items of a loop share a connection
        shell.env_prefix = partial(_prefix_without, shell.env_prefix, prefix)


def _prefix_without(env_prefix: Callable[..., str], prefix: str, **variables) -> str:
    return env_prefix(
        **{name: value for name, value in variables.items() if not str(name).startswith(prefix)}
    )


def variables_given(action) -> set[str]:
    """Return the names of the variables on the command line and in the play, which has those of
    `import_playbook`.
    """
    block = action._task
    while not isinstance(block, Block):
        block = block._parent
    return {*load_extra_vars(action._loader), *block._play.vars}


def counts_attempts(action) -> bool:
    """Return whether ansible-core may repeat the task, which it then counts in `attempts`."""
    return bool(action._task.until) or action._task.retries is not None


def is_python_too_old(result: dict) -> bool:
    """Return whether the target's Python is too old for ansible-core, which it says before the
    module's code runs.
    """
    return bool(_PYTHON_TOO_OLD.match(str(result.get("msg"))))


def why_failed(result: dict) -> str:
    """Return what ansible-core says about a module that failed; since 2.19 that may be in
    `exception` alone.
    """
    said, event = [str(result["msg"])] if result.get("msg") else [], None
    if not said:
        event = getattr(result.get("exception"), "event", None)
    while event:
        said.append(event.msg.rstrip("."))
        event = event.chain and event.chain.event
    return ": ".join(said) or "it said nothing"


@contextmanager
def repeating_nothing(connection) -> Iterator[None]:
    """Have the connection run a command within the context once, and not again after it was lost."""
    try:
        retries = connection.get_option(_RETRIES)
    except KeyError:  # the plugin repeats nothing
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


def _once(run: Callable) -> Callable:
    """Return what runs a command of ssh the first time it is called, and raises
    AnsibleConnectionFailure after that.

    Whatever its option says, the plugin runs a command again when a master connection
    (ControlPersist) was broken, although ssh itself then made a connection of its own, on which the
    command may have run.
    """
    left = [run]

    def run_once(*arguments, **more):
        if not left:
            raise AnsibleConnectionFailure(
                "the connection was lost, and the module may have run before that"
            )
        return left.pop()(*arguments, **more)

    return run_once


class ObservedAction(ActionBase):
    """An action plugin that knows whether the module's own command was handed to the connection.

    Everything before that (interpreter discovery, temporary directory, transfer, permissions) runs
    as the user of the connection; only the module runs as the user that the task becomes
    (`sudoable`).
    """

    module_was_started = False
    creates: bool  # whether the module sends what must not be sent twice

    def _low_level_execute_command(self, cmd, sudoable=True, **more):
        """Run a command on the target; raise ServicesError instead of starting the module for a run
        that has ended.
        """
        if sudoable:
            require_parent()
        self.module_was_started = self.module_was_started or sudoable
        with repeating_nothing(self._connection) if sudoable and self.creates else nullcontext():
            return super()._low_level_execute_command(cmd, sudoable=sudoable, **more)

    @property
    def becomes(self) -> bool:
        """Whether the task changes to another user."""
        return bool(self._connection.become)

    def run_shell(self) -> dict:
        """Run a no-op in a shell on the target, as the user of the module; return `rc` and the
        output.

        An unreachable host, or a user that it cannot become, is found here, provably before the
        module starts.
        """
        return super()._low_level_execute_command("exit 0")

    def _remove_tmp_path(self, tmp_path, force=False):
        """Remove the temporary directory; if the connection is lost meanwhile, the result still
        counts.
        """
        try:
            super()._remove_tmp_path(tmp_path, force)
        except AnsibleConnectionFailure:
            self._connection._shell.tmpdir = None

    def run_module(self, arguments: dict) -> dict:
        """Run the module of the task's name with these arguments, which are modified, and return
        its result.
        """
        wrap_async = bool(self._task.async_val) and not self._connection.has_native_async
        result = self._execute_module(
            module_args=arguments, task_vars=self.task_vars, wrap_async=wrap_async
        )
        if not wrap_async:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result
