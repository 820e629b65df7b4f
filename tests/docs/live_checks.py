"""Writes the tables of assumptions of the pages of channels from their live checks.

python -m tests.docs.live_checks
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from draftsman import plugins
from draftsman.channels import registry
from draftsman.deliveries.channels.live_check import LiveChecks
from tests.docs.pages import DOCS, filled

CHANNELS: Final = [item for item in registry.channels() if item.live_checks is not None]
PAGES: Final[dict[str, Path]] = {
    channel.name: DOCS / f"{channel.docs.rpartition(' ')[2]}.md" for channel in CHANNELS
}
"""The page of each channel with live checks."""


def live_checks(name: str) -> LiveChecks[Any]:
    """Return the live checks of a channel."""
    found: LiveChecks[Any] = plugins.resolve(str(registry.channel(name).live_checks))
    return found


def page(name: str, text: str) -> str:
    """Return the page of a channel with a current table."""
    return filled(text, _table(name))


def _table(name: str) -> Iterator[str]:
    yield "| check | assumption | if it is wrong |"
    yield "|---|---|---|"
    for check in live_checks(name).checks:
        yield f"| `{check.name}` | {check.assumption} | {check.otherwise} |"


if __name__ == "__main__":
    for channel, path in PAGES.items():
        path.write_text(page(channel, path.read_text(encoding="utf-8")), encoding="utf-8")
