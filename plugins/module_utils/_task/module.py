# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a task as a module on a target, with a result that has an outcome however it ends."""

from __future__ import annotations

import select
from typing import Any, Callable, NoReturn

from ansible.module_utils.basic import AnsibleModule

from .._errors import NOT_SENT, InvalidInput, ServicesError
from .._result import Result
from .journal import NoLedger
from .options import NO_LEDGER
from .signals import Interrupted, Signals, deferred
from .specs import ModuleSpec
from .task import Context, carry_out
from .validation import Options, validate

# How the names of additional parameters of Ansible begin.
_INTERNAL = "_ansible_"
# Options of what only the controller has, and why the module refuses them.
_ELSEWHERE = ("ledger", "report", "approved")
_WHY = (
    "works on the controller alone, so the task must run there, without async: add delegate_to:"
    " localhost. A creation on a target needs ledger: none"
)


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
        internal = {name for name in self.params if name.startswith(_INTERNAL)}
        given = {name: self.params.pop(name) for name in self.params.keys() - internal}
        self.options = validate(self._spec, given)
        self.argument_spec = {}
        self.mutually_exclusive = self.required_one_of = self.required_if = None

    def fail_json(self, msg: str, **kwargs: Any) -> NoReturn:
        """Fail with an outcome: AnsibleModule itself fails only before anything is sent."""
        known = {"outcome": NOT_SENT, "changed": False, **kwargs}
        AnsibleModule.fail_json(self, msg, **known)


Work = Callable[[Options, Context, Callable[[str], NoLedger]], Result]


def run_module(spec: ModuleSpec, work: Work = carry_out) -> None:
    """Run the module and exit; `work`: that of a list is in `_list/lists`."""
    module = ServicesModule(spec)
    options = module.options
    try:
        for option in _ELSEWHERE:
            if options.valid().get(option) not in (None, NO_LEDGER) or not spec.operation:
                raise InvalidInput(option, _WHY)
        with deferred() as signals:
            context = Context(
                module.check_mode,
                options.secrets,
                module.no_log,
                why_to_stop=lambda: _why_to_stop(signals),
            )
            result = work(options, context, lambda _service: NoLedger())
    except ServicesError as error:
        result = options.failed(error)
    except Interrupted as error:
        result = options.failed(error.failure())
    for warning in (*options.secrets.warnings(), *result.warnings):
        module.warn(str(warning))
    diff = result.diff if module._diff else None
    returned = result.but(failed=False, warnings=(), diff=diff).as_ansible()
    if result.failed:
        module.fail_json(**returned)
    module.exit_json(**returned)


def _why_to_stop(signals: Signals) -> str:
    """Return that a signal came, or that nothing reads the result any more."""
    poll = select.poll()
    poll.register(1, 0)  # standard output
    is_read = not any(event & select.POLLERR for _file, event in poll.poll(0))
    return signals.why or ("" if is_read else "nothing reads the result any more")
