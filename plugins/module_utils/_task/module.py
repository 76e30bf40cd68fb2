# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The front of the module path: an AnsibleModule that returns the outcome however it ends."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

from .._errors import NOT_SENT, ServicesError
from .._http.transport import Transport
from .._resources.flow import Recorded, Resource, kept_in
from .._secrets import Secrets
from .credentials import secrets_of, shown_options
from .task import (
    KEPT_IN,
    RECORDED,
    Runtime,
    argument_spec,
    perform,
    prepare,
    presentable,
    readable,
    refusal,
)

LEDGER_ELSEWHERE = (
    "ledger: the controller keeps it, so it works neither with async nor without the module's action plugin"
)


class ServicesModule(AnsibleModule):
    """Masks secrets by the rule of the collection, and adds the outcome to AnsibleModule's own failures.

    AnsibleModule would mask the values of no_log options as substrings everywhere, even within names and ids.
    """

    _secrets: Secrets | None = None

    def __init__(self, own: dict, **spec) -> None:
        """`own`: the module's own options; `spec`: what AnsibleModule takes."""
        self._own = own
        super().__init__(supports_check_mode=True, **spec)

    def _load_params(self):
        """Keep AnsibleModule from failing with a traceback; extract what the action plugin passes about the ledger."""
        super()._load_params()
        self.ledger_elsewhere = self.params.pop(KEPT_IN, "")
        self.recorded = self.params.pop(RECORDED, None)
        self.params = readable(self.argument_spec, self.params)

    def exit_json(self, **kwargs):
        self.no_log_values = set()
        super().exit_json(**kwargs, invocation=self._invocation())

    def fail_json(self, msg, **kwargs):
        """Fail; whatever AnsibleModule itself refuses is refused before anything is sent."""
        kwargs.setdefault("outcome", NOT_SENT)
        kwargs.setdefault("changed", False)
        msg = refusal(getattr(self, "validation_result", None), msg)
        self.no_log_values = set()
        super().fail_json(self.known_secrets().scrub_message(msg), **kwargs, invocation=self._invocation())

    def log(self, msg, log_args=None):
        """Write to the system log; AnsibleModule masks only the values of no_log options."""
        scrub = self.known_secrets().scrub_message
        super().log(scrub(msg), scrub(log_args))

    def known_secrets(self) -> Secrets:
        """Return the secrets of the task, always the same object."""
        if self._secrets is None:
            self._secrets = secrets_of(self._own, self.params)
        return self._secrets

    def _invocation(self) -> dict:
        return {"module_args": shown_options(self.params, self.known_secrets())}


def main(resource: Resource) -> None:
    """Run the module and exit."""
    module = ServicesModule(resource.options, **argument_spec(resource.options, resource.constraints))
    if module.params["ledger"]:
        module.fail_json(LEDGER_ELSEWHERE)
    secrets = module.known_secrets()
    warnings: list[str] = []
    try:
        resource = kept_in(resource, module.ledger_elsewhere) if module.ledger_elsewhere else resource
        recorded = Recorded(**module.recorded) if module.recorded else None
        done = perform(prepare(resource, module.params), recorded, Runtime(module.check_mode, Transport), secrets)
        result, warnings = done.result, done.warnings
    except ServicesError as error:
        result = error.result()
    for warning in (*secrets.warnings(), *map(secrets.scrub_message, warnings)):
        module.warn(warning)
    result = presentable(result, secrets, module._diff, module._verbosity)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
