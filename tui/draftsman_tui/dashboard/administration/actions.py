"""Administrative commands: repositories, boards, people, rules, sweeps and archives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from draftsman.durations import parse_duration
from draftsman.entities.people import LINKS, PEOPLE, person_row
from draftsman.entities.permission_rules import backtest_lines
from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.people.policy import Verb
from draftsman.questions.permission_rules.permission_rule import RuleStatus
from draftsman_tui.common.boards import boards_of
from draftsman_tui.common.trello_access import remove_webhook
from draftsman_tui.dashboard.command import CommandGroup, dashboard_command
from draftsman_tui.dashboard.dialogs.simple_dialogs import (
    ChoiceDialog,
    ConfirmDialog,
    PromptDialog,
    TextDialog,
)

if TYPE_CHECKING:
    from draftsman.entities.repos import RepoRow
    from draftsman.questions.permission_rules.permission_rule import PermissionRule
    from draftsman.repos.repo_catalog import Repo
    from draftsman_tui.common.boards import BoardRow
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen
    from draftsman_tui.dashboard.tables.screen import MainScreen


@dashboard_command("default", CommandGroup.ADMINISTRATION, on={"repos"}, needs=Verb.REPOS)
async def set_default_repo(screen: MainScreen, text: str) -> None:
    """Set or clear the default repository.

    The default is cleared if the repository already is.
    """
    repo = _repo(screen)
    await screen.rt.repos.set_default(None if repo.is_default else repo, screen.actor)
    name = "none" if repo.is_default else repo.full_name
    screen.show_message(f"Default repository: {name}")


@dashboard_command(
    "map",
    CommandGroup.ADMINISTRATION,
    on={"repos"},
    needs=Verb.REPOS,
    takes="LABEL [//FOLDER]",
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
    await screen.rt.repos.map(location, screen.actor, label=label.strip())
    screen.show_message(f"Mapped label {label.strip()} to {location.name}")


@dashboard_command(
    "unmap", CommandGroup.ADMINISTRATION, on={"repos"}, needs=Verb.REPOS, takes="LABEL"
)
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
        await screen.rt.repos.unmap(label, screen.actor, repo)
        screen.show_message(f"Unmapped label {label} from {repo.full_name}")


@dashboard_command("forget", CommandGroup.ADMINISTRATION, on={"repos"}, needs=Verb.REPOS)
async def remove_repo(screen: MainScreen, text: str) -> None:
    """Remove the repository, its label mappings and profiles."""
    repo = _repo(screen)
    note = "Deletes its label mappings and profiles. Its jobs and their work are kept."
    if await screen.ask(ConfirmDialog(f"Remove repository {repo.full_name}?", note)):
        await screen.rt.repos.remove(repo, screen.actor)
        screen.show_message(f"Removed repository {repo.full_name}")


@dashboard_command("unwatch", CommandGroup.ADMINISTRATION, on={"boards"}, needs=Verb.BOARDS)
async def remove_board(screen: MainScreen, text: str) -> None:
    """Stop watching the board.

    Its webhook is deleted.
    """
    row = cast("BoardRow | None", screen.table.row)
    if row is None:
        raise Refused("choose a board first")
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


@dashboard_command("link", CommandGroup.ADMINISTRATION, writes=True, takes="CODE")
async def link(screen: BaseScreen, text: str) -> None:
    """Link a chat account to you, by its code."""
    code = text or await screen.ask(PromptDialog("Link code from the chat?", "K7PQ2MXWAB"))
    if code:
        linked = await screen.rt.people.link(code, screen.actor)
        screen.show_message(f"Linked {linked.channel}:{linked.external_id} to {linked.person}")


@dashboard_command("unlink", CommandGroup.ADMINISTRATION, needs=Verb.UNLINK, takes="slack:ID")
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
    if text and (name not in ("slack", "trello") or not id):
        raise UsageError(f"{text[:60]!r}: expected slack:ID or trello:ID, as :people shows it")
    sure = bool(text) and await screen.ask(ConfirmDialog(f"Unlink {text}?", ""))
    if sure:
        person = await screen.rt.people.unlink(name, id, screen.actor)
        screen.show_message(f"Unlinked {text} from {person}")


@dashboard_command("sweep", CommandGroup.ADMINISTRATION, needs=Verb.SWEEP, takes="NAME")
async def sweep(screen: BaseScreen, text: str) -> None:
    """Run a maintenance sweep now."""
    choices = [(name, name) for name in screen.rt.sweeps.names]
    name = text or await screen.ask(ChoiceDialog("Run which sweep?", choices))
    if name:
        count = await screen.rt.sweeps.run_now(name, screen.actor)
        screen.show_message(f"{name}: changed {counted(count, 'row')}")


@dashboard_command("restore", CommandGroup.ADMINISTRATION, needs=Verb.RESTORE, takes="FILE")
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
    summary = f"{counted(content.events, 'event')} of {content.month:%Y-%m}"
    note = "The next prune removes them again unless the retention is longer."
    if await screen.ask(ConfirmDialog(f"Restore {summary}?", note)):
        await screen.rt.archives.restore(path, screen.actor)
        screen.show_message(f"Restored {summary}")


async def _archives(screen: BaseScreen) -> list[tuple[str, str]]:
    """Return a label and the path of each archived month."""
    archives = await screen.rt.archives.all()
    if not archives:
        raise Refused("no events have been archived")
    return [(f"{archive.month:%Y-%m}  {archive.path}", str(archive.path)) for archive in archives]


def _repo(screen: MainScreen) -> Repo:
    row = cast("RepoRow | None", screen.table.row)
    if row is None:
        raise Refused("choose a repository first")
    return row.repo


@dashboard_command(
    "ratify",
    CommandGroup.ADMINISTRATION,
    keys="y",
    on={"rules"},
    needs=Verb.RULES,
    takes="[30d]",
    footer=True,
)
async def ratify_rule(screen: MainScreen, text: str) -> None:
    """Make the proposed rule active, after a look at its backtest."""
    rule = _chosen_rule(screen)
    if rule.status is not RuleStatus.PROPOSED:
        raise Refused(f"rule {rule.id} is {rule.status}")
    seconds = parse_duration(text) if text else None
    test = await screen.rt.rules.test(rule.repo, rule.pattern)
    note = "\n".join(backtest_lines(test))
    if await screen.ask(ConfirmDialog(f"Allow {rule.text} in {rule.repo}?", note)):
        active = await screen.rt.rules.ratify(rule.id, screen.actor, seconds)
        screen.show_message(f"rule {active.id} allows {active.text}")


@dashboard_command(
    "revoke",
    CommandGroup.ADMINISTRATION,
    keys="x",
    on={"rules"},
    needs=Verb.RULES,
    takes="REASON",
    footer=True,
)
async def revoke_rule(screen: MainScreen, text: str) -> None:
    """End the rule at once."""
    rule = _chosen_rule(screen)
    await screen.rt.rules.revoke(rule.id, screen.actor, text)
    screen.show_message(f"rule {rule.id} has ended")


def _chosen_rule(screen: MainScreen) -> PermissionRule:
    rule = cast("PermissionRule | None", screen.table.row)
    if rule is None:
        raise Refused("choose a rule first")
    return rule
