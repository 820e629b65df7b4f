"""Doctor checks of Slack and Trello, which their bots make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import ConfigError
from draftsman_tui.cli.setup.doctor_checks import Finding
from draftsman_tui.terminal.extras import require

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings.slack import SlackSettings


async def check_slack(slack: SlackSettings) -> list[Finding]:
    """Return the doctor findings for Slack."""
    try:
        require("slack")
    except ConfigError as error:
        return [Finding("slack", "fail", str(error))]
    from draftsman_bots.slack.doctor import checks

    return [Finding("slack", check.status, check.text, check.hint) async for check in checks(slack)]


async def check_trello(rt: Runtime) -> list[Finding]:
    """Return the doctor findings for Trello; none if it is not configured."""
    if (trello := rt.settings.trello) is None:
        return []
    try:
        require("trello")
    except ConfigError as error:
        return [Finding("trello", "fail", str(error))]
    from draftsman_bots.trello.doctor import checks

    return [
        Finding("trello", check.status, check.text, check.hint)
        async for check in checks(rt, trello)
    ]
