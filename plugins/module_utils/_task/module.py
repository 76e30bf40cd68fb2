# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The front of the ordinary module path: AnsibleModule, whose every end says what happened on the wire."""

from __future__ import annotations

from types import ModuleType

from ansible.module_utils.basic import AnsibleModule

from .._errors import NOT_SENT
from .._secrets import scrub
from .task import argument_spec, given_secrets, perform, presentable, refusal


class ServicesModule(AnsibleModule):
    """Adds the outcome to a failure of AnsibleModule's own, which all come before anything is sent."""

    def exit_json(self, **kwargs):
        super().exit_json(**kwargs, invocation=self._invocation())

    def fail_json(self, msg, **kwargs):
        kwargs.setdefault("outcome", NOT_SENT)
        kwargs.setdefault("changed", False)
        self.no_log_values.update(given_secrets(self.params))  # AnsibleModule knows `a=b` as a whole only
        msg = refusal(getattr(self, "validation_result", None), msg)
        super().fail_json(msg, **kwargs, invocation=self._invocation())

    def _invocation(self) -> dict:
        """Return the options as they are shown; AnsibleModule would leave secrets in their keys."""
        return scrub({"invocation": {"module_args": self.params}}, self.no_log_values)["invocation"]


def main(resource: ModuleType) -> None:
    """Run a module to its end."""
    module = ServicesModule(supports_check_mode=True, **argument_spec(resource))
    if module.params["ledger"]:
        module.fail_json(
            "ledger: it is kept by the controller, so it works neither with async nor where only the module is run"
        )
    done = perform(resource, module.params, module.check_mode)
    module.no_log_values.update(done.secrets)
    for warning in done.warnings:
        module.warn(warning)
    result = presentable(done.result, module.no_log_values, module._diff, module._verbosity)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
