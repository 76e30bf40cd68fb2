# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms in which a secret may come back, all of which are scrubbed."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus


def forms(secret: str) -> set[str]:
    """Return the secret as it is, URL-quoted, JSON-escaped and as Python shows it; nothing for an empty one."""
    shown = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret), repr(secret)[1:-1]}
    shown |= {json.dumps(form)[1:-1] for form in (secret, repr(secret)[1:-1])}
    shown |= {json.dumps(secret, ensure_ascii=False)[1:-1]}
    return shown - {""}


def basic(user: str, password: str) -> set[str]:
    """Return the Basic credentials (RFC 7617) of both, as they are and form-encoded first (RFC 6749 section 2.3.1)."""
    pairs = f"{user}:{password}", f"{quote_plus(user)}:{quote_plus(password)}"
    return {base64.b64encode(pair.encode("utf-8")).decode("ascii") for pair in pairs}
