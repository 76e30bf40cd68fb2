# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One task from its options to its result, the same wherever it runs."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, NamedTuple

from ansible.module_utils.errors import NoLogError, RequiredError

from .. import _secrets
from .._call.client import Client
from .._call.tokens import FetchedToken
from .._errors import ServicesError
from .._http.settings import ConnectionSettings
from .._http.transport import Transport
from .._resources.flow import Recorded
from . import options
from .options import settings_from

LONGEST_ERROR_BODY = 1000  # characters in a result
SHARED_OPTIONS = options.ARGUMENT_SPEC


class Done(NamedTuple):
    """What came of a task: its result, what to warn of, and all that must not be shown."""

    result: dict
    warnings: list[str]
    secrets: set[str]


def argument_spec(resource: ModuleType) -> dict[str, Any]:
    """Return what AnsibleModule and ArgumentSpecValidator take: the options of a resource and those that all share."""
    options = {**SHARED_OPTIONS, **resource.ARGUMENT_SPEC}
    fresh = {name: dict(options[name], default={}) for name in options if options[name].get("default") == {}}
    return dict(argument_spec={**options, **fresh}, **resource.CONSTRAINTS)  # validation writes into a default


def refusal(validated: Any, msg: str) -> str:
    """Return what to say of options that ansible-core refuses with `msg`: if it names no option, the error that does.

    It looks for secrets in suboptions first, and what goes wrong there has no name.
    """
    errors = validated.errors.errors if validated else []
    if any(isinstance(error, RequiredError) and "base_url" in error.msg for error in errors):
        return f"{msg}; base_url can also come from the variable {options.ENVIRONMENT_PREFIX}BASE_URL"
    named = [error.msg for error in errors if not isinstance(error, NoLogError)]
    return named[0] if named and isinstance(errors[0], NoLogError) and msg == errors[0].msg else msg


def perform(
    resource: ModuleType,
    params: dict,
    check_mode: bool,
    connect: Callable[[ConnectionSettings], Transport] = Transport,
    keep_token=FetchedToken,
    recorded: Recorded | None = None,
) -> Done:
    """Run a task with validated options; our own errors become a failed result, here and nowhere else.

    `connect` makes a transport or hands out one that is kept, `keep_token` likewise for a fetched token;
    `recorded`: what the ledger remembers of the asset.
    """
    client, warnings, secrets = None, [], given_secrets(params)
    try:
        settings = settings_from(params)
        client = Client(settings, connect, keep_token)
        if not settings.connection.validate_certs:
            warnings.append(
                "validate_certs is false: whoever is in between can read the token and change what is sent."
            )
        result = resource.run(params, check_mode, client, recorded)
    except ServicesError as error:
        result = error.result()
    if client:
        secrets.update(form for token in client.tokens for form in _secrets.forms(token))
        result["trace"] = client.trace
        warnings += client.warnings
    return Done(result, warnings + result.pop("warnings", []), secrets)


def presentable(result: dict, secrets: set[str], diff_mode: bool, verbosity: int) -> dict:
    """Return the result as the user sees it: `diff` and `trace` where they were asked for, and no secret anywhere."""
    hidden = {"diff": not diff_mode, "trace": verbosity < 3}
    shown = _secrets.scrub({key: value for key, value in result.items() if not hidden.get(key)}, secrets)
    if "error_body" in shown:  # cut only now: scrubbing cannot match half a secret
        shown["error_body"] = shown["error_body"][:LONGEST_ERROR_BODY]
    return shown


def given_secrets(params: dict) -> set[str]:
    """Return every form of the secrets that the options hold, be they valid or not."""
    client, secret, parameters = (params.get(name) for name in ("client_id", "client_secret", "auth_parameters"))
    given = [params.get("access_token"), secret, *(parameters.values() if isinstance(parameters, dict) else ())]
    texts = {str(value) for value in given if isinstance(value, (str, int, float)) and not isinstance(value, bool)}
    shown = {form for text in texts for form in _secrets.forms(text)}
    if client and secret:
        shown |= _secrets.basic(str(client), str(secret))
    return shown | _secrets.password_in(str(params.get("ledger") or ""))
