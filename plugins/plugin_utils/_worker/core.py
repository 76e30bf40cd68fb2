# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ansible-core did otherwise before 2.19: how options become JSON, and how data is kept from being a template."""

from __future__ import annotations

import os
from functools import partial

from ansible import constants

try:
    from ansible.module_utils.common.json import Direction, get_module_encoder

    ENCODER = get_module_encoder("legacy", Direction.CONTROLLER_TO_MODULE)

    def untrusted(data):
        """Return data that is no template: a string is none unless it is marked as trusted."""
        return data

except ImportError:
    from ansible.module_utils.common.json import AnsibleJSONEncoder
    from ansible.utils.unsafe_proxy import wrap_var

    ENCODER = partial(AnsibleJSONEncoder, vault_to_text=True)

    def untrusted(data):
        """Return data that is no template: each of its strings is marked as unsafe."""
        return wrap_var(data)


def run_id() -> str:
    """Return what names this ansible run in all its processes: the unique end of its temporary directory's name."""
    return os.path.basename(constants.DEFAULT_LOCAL_TMP).removeprefix("ansible-local-")
