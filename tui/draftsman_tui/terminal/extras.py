"""Optional extras of the package and how to install them."""

from __future__ import annotations

import importlib.util
import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from draftsman.errors import ConfigError

EXTRAS: Final = {
    "tui": ("textual", "textual_serve", "re2"),
    "slack": ("slack_bolt", "aiohttp", "starlette", "uvicorn", "prometheus_client"),
    "trello": ("trello", "starlette", "uvicorn", "prometheus_client"),
    "forges": ("starlette", "uvicorn", "prometheus_client"),
    "pagers": ("starlette", "uvicorn", "prometheus_client"),
    "web": ("jinja2", "joserfc", "segno", "starlette", "uvicorn"),
}
"""Top-level modules of each extra of pyproject.toml."""
_NAMES: Final = {
    "tui": "dashboard",
    "slack": "Slack bot",
    "trello": "Trello bot",
    "forges": "receiver of forge events",
    "pagers": "receiver of pager webhooks",
    "web": "web inbox",
}


def missing(extra: str) -> str | None:
    """Return a module of the extra that is not installed, if any."""
    return next((name for name in EXTRAS[extra] if importlib.util.find_spec(name) is None), None)


def advice(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"the {_NAMES[extra]} is not installed; run: pip install {_requirement(extra)}"


def require(extra: str) -> None:
    """Raise ConfigError if the extra is not installed."""
    if (name := missing(extra)) is not None:
        raise ConfigError(f"{advice(extra)}  (module {name} not found)")


def _requirement(extra: str) -> str:
    """Return the requirement for pip: the source folder of this installation, or the name."""
    folder = _folder()
    return shlex.quote(f"{folder or 'draftsman'}[{extra}]")


def _folder() -> Path | None:
    try:
        text = distribution("draftsman").read_text("direct_url.json")
        url = urlsplit(str(json.loads(text or "{}").get("url", "")))
    except (PackageNotFoundError, ValueError):
        return None
    folder = Path(unquote(url.path))
    return folder if url.scheme == "file" and (folder / "pyproject.toml").is_file() else None
