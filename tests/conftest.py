# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes the checkout importable as the collection, and shields the tests from the caller's environment."""

from __future__ import annotations

import os
import signal

from support.checkout import CHECKOUT

__all__ = ["CHECKOUT"]

# Nothing set in the caller's shell may affect the result of a test: under nohup SIGHUP would be ignored, and in the
# background of a script SIGINT.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
_DECIDING = ("ANSIBLE_", "INFRASTRUCTURE_SERVICES_", "TRACEPARENT", "SSL_CERT_")
for _name in list(os.environ):
    if _name.startswith(_DECIDING) or _name.lower().endswith(("_proxy", "_ca_bundle")):
        del os.environ[_name]
