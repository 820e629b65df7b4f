"""Actions on permission rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from draftsman.errors import Refused
from draftsman_tui.common import times
from draftsman_tui.common.text.rule_text import backtest_lines
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog

if TYPE_CHECKING:
    from draftsman.domain.attention.permission_rule import PermissionRule
    from draftsman_tui.dashboard.screens.main import MainScreen


async def ratify(screen: MainScreen, text: str) -> None:
    """Make the proposed rule active, after a look at its backtest."""
    rule = _chosen(screen)
    seconds = times.parse_duration(text) if text else None
    test = await screen.rt.rules.test(rule.repo, rule.pattern)
    note = "\n".join(backtest_lines(test))
    if await screen.ask(ConfirmDialog(f"Allow {rule.text} in {rule.repo}?", note)):
        active = await screen.rt.rules.ratify(rule.id, screen.actor, seconds)
        screen.show_message(f"rule {active.id} allows {active.text}")


async def revoke(screen: MainScreen, text: str) -> None:
    """End the rule at once."""
    rule = _chosen(screen)
    await screen.rt.rules.revoke(rule.id, screen.actor, text)
    screen.show_message(f"rule {rule.id} has ended")


def _chosen(screen: MainScreen) -> PermissionRule:
    rule = cast("PermissionRule | None", screen.table.row)
    if rule is None:
        raise Refused("choose a rule first")
    return rule
