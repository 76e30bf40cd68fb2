# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an attempt failed, of errors that the installed libraries do not raise; tests/faults and
tests/tls have the others.
"""

from __future__ import annotations

import socket

from ansible_collections.infrastructure.services.plugins.module_utils._http.failures import (
    failed_attempt,
)
from ansible_collections.infrastructure.services.plugins.module_utils._http.sockets import (
    Meter,
    Phase,
)
from urllib3.exceptions import MaxRetryError


class CertificateError(ValueError):
    """As urllib3 1.26 has it."""


def test_a_certificate_for_another_host_is_not_asked_for_again():
    meter = Meter(10)
    meter.reach(Phase.TLS, "service.example", 443)
    failed = failed_attempt(CertificateError("doesn't match"), meter)
    assert (failed.sent, failed.hopeless) == (False, True)
    assert failed.msg == (
        "the certificate was not accepted: certificate is not valid for 'service.example'"
        " (service.example port 443)"
    )


def test_a_cause_that_urllib3_keeps_apart_is_found():
    meter = Meter(10)
    meter.reach(Phase.CONNECT, "service.example", 443)
    failed = failed_attempt(MaxRetryError(None, "/", socket.timeout()), meter)
    assert failed.msg == "connecting timed out (service.example port 443)"
