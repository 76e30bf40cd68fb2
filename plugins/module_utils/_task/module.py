# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task as a module on a target, with a result that has an outcome however it ends."""

from __future__ import annotations

import select
from typing import Any, Callable, NoReturn

from ansible.module_utils.basic import AnsibleModule

from .._call.place import Place
from .._errors import NOT_SENT, InvalidInput, ServicesError
from .._fields import Params
from .._resources.planning import Recorded
from .._result import Result
from .signals import Signals, deferred
from .specs import ModuleSpec
from .task import RECORDED, Context, carry_out, prepare
from .validation import validate

# Takes a specification, validated options and a context; raises ServicesError.
SendAll = Callable[[ModuleSpec, Params, Context], Result]
# How the names of additional parameters of Ansible begin.
_INTERNAL = "_ansible_"
_ELSEWHERE = {"report": "the controller writes it", "approved": "the controller has the plan"}


class ServicesModule(AnsibleModule):
    """Validates the options as the worker does, and masks secrets by the rule of the collection.

    AnsibleModule has other messages for faults. It would also mask the values of no_log options as
    substrings everywhere, even within names and ids. So it does not get any option.
    """

    def __init__(self, spec: ModuleSpec) -> None:
        self._spec = spec
        AnsibleModule.__init__(self, supports_check_mode=True, **spec.documented())

    def _load_params(self) -> None:
        """Validate the options, and leave the other parameters to AnsibleModule."""
        AnsibleModule._load_params(self)
        given: Params = {}
        internal: Params = {}
        for name, value in self.params.items():
            of_kind = internal if name.startswith(_INTERNAL) else given
            of_kind[name] = value
        self.recorded = given.pop(RECORDED, None)
        self.options = validate(self._spec, given)
        self.params = internal
        self.argument_spec = {}
        self.mutually_exclusive = self.required_one_of = self.required_if = None

    def context(self, place: Place) -> Context:
        """Return how the task runs."""
        secrets = self.options.secrets
        return Context(self.check_mode, secrets, place, diff_mode=self._diff, no_log=self.no_log)

    def fail_json(self, msg: str, **kwargs: Any) -> NoReturn:
        """Fail with an outcome: AnsibleModule itself fails only before anything is sent."""
        known = {"outcome": NOT_SENT, "changed": False, **kwargs}
        AnsibleModule.fail_json(self, msg, **known)


def run_module(spec: ModuleSpec, send_all: SendAll | None = None) -> None:
    """Run the module and exit; `send_all`: carries out a list."""
    module = ServicesModule(spec)
    secrets = module.options.secrets
    try:
        if module.options.valid()["ledger"] or not spec.resource:
            why = (
                "the controller keeps it, so it works neither with async nor"
                " without the module's action plugin"
            )
            raise InvalidInput("ledger", why)
        result = _run_list(module, send_all) if send_all else _run_one(module)
    except ServicesError as error:
        result = module.options.failed(error)
    for warning in (*secrets.warnings(), *result.warnings):
        module.warn(str(warning))
    returned = result.but(failed=False, warnings=()).as_ansible()
    returned.update(invocation=module.options.invocation())
    if result.failed:
        module.fail_json(**returned)
    module.exit_json(**returned)


def _run_one(module: ServicesModule) -> Result:
    """Carry out the task of a module for one asset."""
    task = prepare(module.options.spec.sent, module.options.params, module.check_mode)
    planned = task.planned(Recorded(**module.recorded) if module.recorded else None)
    return carry_out(planned, module.context(Place()))


def _run_list(module: ServicesModule, send_all: SendAll) -> Result:
    """Carry out a list; a signal or the loss of the connection ends it."""
    options = module.options
    for option, why in _ELSEWHERE.items():
        if options.params[option]:
            advice = "so it must run there: add delegate_to: localhost and become: false"
            raise InvalidInput(option, f"{why}, {advice}")
    with deferred() as signals:
        return send_all(options.spec, options.params, module.context(_ListPlace(signals)))


class _ListPlace(Place):
    """The process of a list on a target."""

    def __init__(self, signals: Signals) -> None:
        super().__init__()
        self._signals = signals

    def why_to_stop(self) -> str:
        """Return that a signal came, or that nothing reads the result any more."""
        if self._signals.caught:
            return f"the module received {self._signals.name}"
        poll = select.poll()
        poll.register(1, 0)  # standard output
        is_read = not any(event & select.POLLERR for _file, event in poll.poll(0))
        return "" if is_read else "nothing reads the result any more"
