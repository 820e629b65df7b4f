"""Administrative commands: repositories, boards, people, rules, sweeps and archives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from draftsman.actions import maintenance, rules
from draftsman.actions import people as accounts
from draftsman.entities.people import LINKS, PEOPLE, person_row
from draftsman_bots.trello.command_line.board_access import remove_webhook
from draftsman_bots.trello.records import actions as boards
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import TextDialog
from draftsman_tui.dashboard.frame.perform import act, row_command, typed_command

if TYPE_CHECKING:
    from draftsman.entities.repos import RepoRow
    from draftsman_bots.trello.command_line.board_rows import BoardRow
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen

GROUP: Final = CommandGroup.ADMINISTRATION


@dashboard_command("default", GROUP, does=maintenance.make_default, on={"repos"})
async def set_default_repo(screen: MainScreen, text: str) -> None:
    """Set or clear the default repository.

    The default is cleared if the repository already is.
    """
    row: RepoRow = screen.chosen("repository")
    await act(screen, maintenance.make_default, None if row.repo.is_default else row.repo)


for _name, _action in (
    ("map", maintenance.map_label),
    ("unmap", maintenance.unmap_label),
    ("forget", maintenance.remove_repo),
):
    row_command(_name, GROUP, _action, on={"repos"}, row=lambda row: row.repo)


@dashboard_command("unwatch", GROUP, does=boards.unwatch, on={"boards"})
async def remove_board(screen: MainScreen, text: str) -> None:
    """Stop watching the board.

    Its webhook is deleted.
    """
    row: BoardRow = screen.chosen("board")
    await act(screen, boards.unwatch, row.config, delete_webhook=remove_webhook)


@dashboard_command("people", GROUP)
async def people(screen: BaseScreen, text: str) -> None:
    """List people, roles and linked chat accounts."""
    people = sorted(screen.rt.policy.people.items())
    now = datetime.now(UTC)
    lines = [
        *PEOPLE.text_lines([person_row(name, person) for name, person in people], now),
        *LINKS.text_lines(await screen.rt.people.links(), now),
    ]
    empty = (
        "No people configured. Add [people.NAME] to the settings, or send /draftsman link in Slack"
    )
    await screen.app.push_screen(TextDialog("People", "\n".join(lines) or empty))


typed_command("link", GROUP, accounts.link)
typed_command("unlink", GROUP, accounts.unlink)
typed_command("sweep", GROUP, maintenance.sweep)
typed_command("restore", GROUP, maintenance.restore)
for _name, _key, _rule_action in (("ratify", "y", rules.ratify), ("revoke", "x", rules.revoke)):
    row_command(
        _name, GROUP, _rule_action, on={"rules"}, row=lambda rule: rule.id, keys=_key, footer=True
    )
