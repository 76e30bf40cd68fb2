"""Ansible's commands, the installed artifact and the emulator, as in the integration tests."""

from __future__ import annotations

from support.fixtures import ansible_once, collections, installed, running_service, service

__all__ = ["ansible_once", "collections", "installed", "running_service", "service"]
