"""Administrative commands: repositories, boards, people, rules, sweeps and archives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from draftsman.actions import maintenance as actions
from draftsman.actions import rules
from draftsman.channels import CHANNEL_NAME
from draftsman.entities.people import LINKS, PEOPLE, person_row
from draftsman.entities.permission_rules import backtest_lines
from draftsman.entities.repos import RepoRow
from draftsman.errors import Refused, UsageError
from draftsman.people.policy import Verb
from draftsman.questions.permission_rules.permission_rule import RATIFIED, PermissionRule
from draftsman.repos.repo_catalog import Repo
from draftsman_bots.trello.command_line.board_rows import BoardRow
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import (
    ChoiceDialog,
    ConfirmDialog,
    PromptDialog,
    TextDialog,
)
from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.frame.perform import call_of, confirmed_about, perform, row_command
from draftsman_tui.dashboard.tables.screen import MainScreen


@dashboard_command("default", CommandGroup.ADMINISTRATION, does=actions.make_default, on={"repos"})
async def set_default_repo(screen: MainScreen, text: str) -> None:
    """Set or clear the default repository.

    The default is cleared if the repository already is.
    """
    repo = _repo(screen)
    default = None if repo.is_default else repo
    await perform(screen, actions.make_default(call_of(screen), default))


@dashboard_command(
    "map",
    CommandGroup.ADMINISTRATION,
    does=actions.map_label,
    on={"repos"},
)
async def map_label(screen: MainScreen, text: str) -> None:
    """Map a label to the repository.

    `text` may name a folder: `payments //services/api`.
    """
    repo = _repo(screen)
    mapping = text or await screen.ask(
        PromptDialog(f"Label to map to {repo.full_name}?", "payments")
    )
    if not mapping:
        return
    label, _, folder = mapping.partition("//")
    location = await screen.rt.repos.place(
        f"{repo.full_name}//{folder}" if folder else repo.remote_url
    )
    await perform(screen, actions.map_label(call_of(screen), location, label.strip()))


@dashboard_command("unmap", CommandGroup.ADMINISTRATION, does=actions.unmap_label, on={"repos"})
async def unmap_label(screen: MainScreen, text: str) -> None:
    """Remove a label mapping of the repository."""
    repo = _repo(screen)
    labels = [
        mapping.label_name or mapping.label_id or ""
        for mapping in (await screen.rt.repos.catalog()).mappings
        if mapping.repo == repo.id
    ]
    if not labels:
        raise Refused(f"no label is mapped to {repo.full_name}")
    label = text or await screen.ask(
        ChoiceDialog("Which label?", [(name, name) for name in labels])
    )
    if label:
        await perform(screen, actions.unmap_label(call_of(screen), repo, label))


row_command(
    "forget",
    CommandGroup.ADMINISTRATION,
    actions.remove_repo,
    "repos",
    lambda row: row.repo,
    title=lambda row: row.repo.full_name,
)


@dashboard_command("unwatch", CommandGroup.ADMINISTRATION, on={"boards"}, needs=Verb.BOARDS)
async def remove_board(screen: MainScreen, text: str) -> None:
    """Stop watching the board.

    Its webhook is deleted.
    """
    from draftsman_bots.trello.command_line.board_access import remove_webhook
    from draftsman_bots.trello.records.service import boards_of

    row: BoardRow = screen.chosen("board")
    board = row.config
    note = "Its jobs and the comments on its cards are kept."
    if await screen.ask(ConfirmDialog(f"Stop watching board {board.name}?", note)):
        await boards_of(screen.rt).remove(board.board_id, screen.actor)
        problem = await remove_webhook(screen.rt, board)
        screen.show_message(
            f"Stopped watching board {board.name}" + (f"; {problem}" if problem else "")
        )


@dashboard_command("people", CommandGroup.ADMINISTRATION)
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


@dashboard_command("link", CommandGroup.ADMINISTRATION, does=actions.link, writes=True)
async def link(screen: BaseScreen, text: str) -> None:
    """Link a chat account to you, by its code."""
    code = text or await screen.ask(PromptDialog("Link code from the chat?", "K7PQ2MXWAB"))
    if code:
        await perform(screen, actions.link(call_of(screen), code))


@dashboard_command("unlink", CommandGroup.ADMINISTRATION, does=actions.unlink)
async def unlink(screen: BaseScreen, text: str) -> None:
    """Unlink a chat account."""
    if not text:
        accounts = [f"{link.channel}:{link.external_id}" for link in await screen.rt.people.links()]
        if not accounts:
            raise Refused("no chat account is linked")
        text = (
            await screen.ask(
                ChoiceDialog("Unlink which account?", [(account, account) for account in accounts])
            )
            or ""
        )
    name, _, id = text.partition(":")
    if text and (not id or not CHANNEL_NAME.fullmatch(name)):
        raise UsageError(f"{text[:60]!r}: expected CHANNEL:ID, as :people shows it")
    if text and await confirmed_about(screen, actions.unlink, text):
        await perform(screen, actions.unlink(call_of(screen), (name, id)))


@dashboard_command("sweep", CommandGroup.ADMINISTRATION, does=actions.sweep)
async def sweep(screen: BaseScreen, text: str) -> None:
    """Run a maintenance sweep now."""
    choices = [(name, name) for name in screen.rt.sweeps.names]
    name = text or await screen.ask(ChoiceDialog("Run which sweep?", choices))
    if name:
        await perform(screen, actions.sweep(call_of(screen), name))


@dashboard_command("restore", CommandGroup.ADMINISTRATION, does=actions.restore)
async def restore(screen: BaseScreen, text: str) -> None:
    """Restore an archived month of events."""
    if not text:
        text = await screen.ask(ChoiceDialog("Restore which month?", await _archives(screen))) or ""
    if not text:
        return
    path = Path(text).expanduser()
    if not path.is_file():
        raise UsageError(
            f"{text[:200]}: file not found; use the machine of the leader that archived it"
        )
    content = await screen.rt.archives.check(path)
    if await confirmed_about(screen, actions.restore, actions.archived(content)):
        await perform(screen, actions.restore(call_of(screen), path))


async def _archives(screen: BaseScreen) -> list[tuple[str, str]]:
    """Return a label and the path of each archived month."""
    archives = await screen.rt.archives.all()
    if not archives:
        raise Refused("no events have been archived")
    return [(f"{archive.month:%Y-%m}  {archive.path}", str(archive.path)) for archive in archives]


def _repo(screen: MainScreen) -> Repo:
    row: RepoRow = screen.chosen("repository")
    return row.repo


@dashboard_command(
    "ratify",
    CommandGroup.ADMINISTRATION,
    does=rules.ratify,
    keys="y",
    on={"rules"},
    footer=True,
)
async def ratify_rule(screen: MainScreen, text: str) -> None:
    """Make the proposed rule active, after a look at its backtest."""
    rule: PermissionRule = screen.chosen("rule")
    RATIFIED.check(f"rule {rule.id}", rule.status)
    arguments = rules.parse_time(text)
    test = await screen.rt.rules.test(rule.repo, rule.pattern)
    note = "\n".join(backtest_lines(test))
    if await confirmed_about(screen, rules.ratify, f"{rule.text} in {rule.repo}", note):
        await perform(screen, rules.ratify(call_of(screen), rule.id, **arguments))


row_command(
    "revoke",
    CommandGroup.ADMINISTRATION,
    rules.revoke,
    "rules",
    lambda rule: rule.id,
    keys="x",
    footer=True,
)
