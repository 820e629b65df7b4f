"""Checks of pagers by `draftsman doctor`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from draftsman_bots.pagers.settings import webhook_pagers
from draftsman_bots.process.checks import Check

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings


async def checks(settings: Settings, rt: Runtime | None) -> AsyncIterator[Check]:
    """Warn about a pager whose webhook is received, and where no person has an account."""
    people = () if rt is None else rt.policy.people.values()
    ids = [id for person in people for id in person.pagers]
    for name in sorted(webhook_pagers(settings)) if rt is not None else ():
        if not any(id.startswith(f"{name}:".casefold()) for id in ids):
            text = f"{name}: no person has an account there, so acknowledgments there do not count"
            hint = (
                f"draftsman people set NAME --account pager:{name}:USER, or pager in [people.NAME]"
            )
            yield Check("warn", text, hint)
