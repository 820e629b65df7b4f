"""Optional extras of the package and how to install them."""

from __future__ import annotations

import importlib.util
import json
import shlex
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from draftsman import plugins
from draftsman.channels import registry
from draftsman.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional extra of a package."""

    name: str
    label: str
    """What people call what needs it."""
    modules: tuple[str, ...]
    package: str = "draftsman"


LOCAL_CHATS: Final = Extra("testing", "local Slack or Trello of the demo", ("aiohttp",))
DASHBOARD: Final = Extra("tui", "dashboard", ("textual", "textual_serve", "re2"))


def of_channel(name: str) -> Extra:
    """Return the extra of a channel's package; raises ConfigError for an unknown channel."""
    channel = registry.channel(name)
    package = plugins.find(plugins.CHANNELS, name).package
    return Extra(channel.table, channel.bot_label, channel.requires, package)


def missing(extra: Extra) -> str | None:
    """Return a module of the extra that is not installed, if any."""
    return next((name for name in extra.modules if importlib.util.find_spec(name) is None), None)


def advice(extra: Extra) -> str:
    """Return the command that installs an extra."""
    return f"the {extra.label} is not installed; run: pip install {_requirements(extra)}"


def require(extra: Extra) -> None:
    """Raise ConfigError if the extra is not installed."""
    if (name := missing(extra)) is not None:
        raise ConfigError(f"{advice(extra)}  (module {name} not found)")


def _requirements(extra: Extra) -> str:
    """Return what pip installs: an extra of the source folder or package, else its libraries.

    draftsman itself is not looked for on an index, where its name may belong to others.
    """
    if extra.package != plugins.OWN:
        return shlex.quote(f"{extra.package}[{extra.name}]")
    if folder := source_folder():
        return shlex.quote(f"{folder}[{extra.name}]")
    lines = (line.partition(";") for line in distribution(plugins.OWN).requires or ())
    return shlex.join(name.strip() for name, _, when in lines if f"'{extra.name}'" in when)


def source_folder() -> Path | None:
    """Return the folder of the sources that this installation was made from, if it was."""
    try:
        text = distribution("draftsman").read_text("direct_url.json")
        url = urlsplit(str(json.loads(text or "{}").get("url", "")))
    except (PackageNotFoundError, ValueError):
        return None
    folder = Path(unquote(url.path))
    return folder if url.scheme == "file" and (folder / "pyproject.toml").is_file() else None
