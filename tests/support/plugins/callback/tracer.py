"""Writes to TRACER_FILE the file of the collection that each call and return of a worker is in,
and the function, once while the file stays the same.
"""

from __future__ import annotations

import os
import sys
import threading

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: tracer
type: aggregate
short_description: traces the files of the collection that a task runs through
description: Used by tests/tools/measure.py.
"""
_ROOT = "/infrastructure/services/plugins/"


class CallbackModule(CallbackBase):
    """Sets a profile hook that workers inherit when they are forked."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "tracer"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task, is_conditional):
        """Trace from here on; the main process itself runs no code of the collection."""
        main, root = os.getpid(), _ROOT  # the hook outlives the globals of this module
        output = os.open(os.environ["TRACER_FILE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        last = None

        def hook(frame, event, _argument):
            nonlocal last
            if event == "return":
                frame = frame.f_back
            if (
                event in ("call", "return")
                and frame
                and root in frame.f_code.co_filename
                and os.getpid() != main
            ):
                here = frame.f_code.co_filename.partition(root)[2]
                if here != last:
                    last = here
                    os.write(output, f"{here} {frame.f_code.co_name}\n".encode())

        threading.setprofile(hook)
        sys.setprofile(hook)
