"""The installed artifact, the emulator inside it, and Ansible's commands."""

from __future__ import annotations

from support.fixtures import (
    ansible,
    ansible_in,
    ansible_once,
    collections,
    installed,
    running_service,
    service,
)

__all__ = [
    "ansible",
    "ansible_in",
    "ansible_once",
    "collections",
    "installed",
    "running_service",
    "service",
]
