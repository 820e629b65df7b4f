"""Issues with a label, each with the event that gave it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final

from draftsman.errors import Failure
from draftsman.forges.forge_event import ForgeEvent, Labeling, labeled

GONE: Final = (404, 410)
"""Statuses of an issue that was deleted or moved."""


class LabeledIssues:
    """The labels of a repository's issues, which are read again once an issue has changed."""

    def __init__(self, labelings: Callable[[int, str], Awaitable[list[Labeling]]]) -> None:
        """Take the function that returns the events by which an issue was given a label."""
        self._labelings = labelings
        self._known: dict[str, ForgeEvent] = {}

    async def events(self, found: Iterable[ForgeEvent]) -> list[ForgeEvent]:
        """Return the events of the issues that have the label now, with their labelers."""
        known: dict[str, ForgeEvent] = {}
        for event in found:
            own = self._known.get(event.key)
            if own is None:
                own = labeled(replace(event, at=None), await self._of(event))
            known[event.key] = replace(own, title=event.title, text=event.text)
        self._known = known
        return list(known.values())

    async def _of(self, event: ForgeEvent) -> list[Labeling]:
        """Return the labelings; none of an issue that was deleted or moved meanwhile."""
        try:
            return await self._labelings(event.number, event.label or "")
        except Failure as error:
            if error.http_status not in GONE:
                raise
            return []
