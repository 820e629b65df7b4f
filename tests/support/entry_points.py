"""The entry points of this environment."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from draftsman import plugins

PROJECT: Final = Path(__file__).parents[2] / "pyproject.toml"
INSTALL: Final = f"{sys.executable} -m pip install --no-deps --no-build-isolation -e ."


def check_entry_points() -> None:
    """Raise UsageError if they are not those of `pyproject.toml`: plugins would not be found."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    for group, declared in groups.items():
        if group not in plugins.GROUPS:
            continue
        own = [plugin for plugin in plugins.installed(group) if plugin.package == plugins.OWN]
        if {plugin.name: plugin.target for plugin in own} != declared:
            raise pytest.UsageError(
                f"the installed entry points of {group} are not those of pyproject.toml; run:"
                f" {INSTALL}"
            )
