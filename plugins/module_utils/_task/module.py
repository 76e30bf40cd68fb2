# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The front of every module: AnsibleModule around a task, with a result that says the outcome
however it ends.
"""

from __future__ import annotations

import select
from dataclasses import replace
from functools import partial
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule

from .._call.tokens import FetchedToken, Memory
from .._errors import NOT_SENT, InvalidInput, ServicesError
from .._http.transport import Transport
from .._resources.planning import Recorded
from .._result import Result
from .signals import Signals, deferred
from .specs import ModuleSpec
from .task import RECORDED, Context, carry_out, perform, prepare
from .validation import Options, validate

_INTERNAL = "_ansible_"  # the start of the names of what Ansible passes in addition to the options
_ELSEWHERE = {"report": "the controller writes it", "approved": "the controller has the plan"}


class ServicesModule(AnsibleModule):
    """Validates the options as the worker does, and masks secrets by the rule of the collection.

    AnsibleModule has other words for what is wrong, and would mask the values of no_log options as
    substrings everywhere, even within names and ids. So it does not get to see any option.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec
        super().__init__(supports_check_mode=True, **spec.documented())

    def _load_params(self):
        """Validate the options, and leave to AnsibleModule what Ansible passes in addition to them."""
        super()._load_params()
        given = {
            name: value for name, value in self.params.items() if not name.startswith(_INTERNAL)
        }
        self.recorded = given.pop(RECORDED, None)
        self.options = validate(self._spec, given)
        self.params = {
            name: value for name, value in self.params.items() if name.startswith(_INTERNAL)
        }
        self.argument_spec = {}
        self.mutually_exclusive = self.required_one_of = self.required_if = None

    def fail_json(self, msg, **kwargs):
        """Fail; whatever AnsibleModule itself refuses is refused before anything is sent."""
        super().fail_json(msg, **{"outcome": NOT_SENT, "changed": False, **kwargs})


def run_module(
    spec: ModuleSpec, send_all: Callable[[ModuleSpec, dict, Context], Any] | None = None
) -> None:
    """Run the module and exit; `send_all`: does the tasks of a list and returns a ListResult,
    raising ServicesError.
    """
    module = ServicesModule(spec)
    secrets = module.options.secrets
    shown = dict(diff_mode=module._diff, no_log=module.no_log)
    context = Context(module.check_mode, secrets, Transport, **shown)
    try:
        if module.options.valid()["ledger"] or not spec.resource:
            why = "the controller keeps it, so it works neither with async nor without the module's action plugin"
            raise InvalidInput("ledger", why)
        result = _many(module.options, context, send_all) if send_all else _one(module, context)
    except ServicesError as error:
        result = module.options.failed(error)
    for warning in (*secrets.warnings(), *result.warnings):
        module.warn(str(warning))
    returned = replace(result, failed=False, warnings=()).as_ansible()
    end = module.fail_json if result.failed else module.exit_json
    end(**returned, invocation=module.options.invocation())


def _one(module: ServicesModule, context: Context) -> Result:
    """Do the task of a module for one asset."""
    task = prepare(module.options.spec.resource, module.options.params, module.check_mode)
    planned = task.planned(Recorded(**module.recorded) if module.recorded else None)
    return carry_out(planned, context, partial(perform, context=context))


def _many(
    options: Options, context: Context, send_all: Callable[[ModuleSpec, dict, Context], Any]
) -> Result:
    """Do the tasks of a list, ended by signals and by the loss of the connection."""
    for option, why in _ELSEWHERE.items():
        if options.params[option]:
            raise InvalidInput(
                option, f"{why}, so it must run there: add delegate_to: localhost and become: false"
            )
    token_source = partial(FetchedToken, memory=Memory())
    with deferred() as signals:
        context = replace(context, token_source=token_source, watch=partial(_why_to_stop, signals))
        result = send_all(options.spec, options.params, context)
        return result.returned(result.done(), options.params["results"])


def _why_to_stop(signals: Signals) -> str:
    """Return why to stop now, empty to go on: a signal, or that nothing reads the result any more."""
    if signals.caught:
        return f"the module received {signals.name}"
    poll = select.poll()
    poll.register(1, 0)  # standard output
    is_read = not any(event & select.POLLERR for _file, event in poll.poll(0))
    return "" if is_read else "nothing reads the result any more"
