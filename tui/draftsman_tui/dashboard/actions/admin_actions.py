"""What keeps house: repositories, boards, people, the sweeps of the leader, archives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from draftsman.domain.job import Source
from draftsman.errors import Refused, UsageError
from draftsman_tui.common import times
from draftsman_tui.common.trello_access import remove_webhook
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog
from draftsman_tui.dashboard.dialogs.text_dialog import TextDialog

if TYPE_CHECKING:
    from draftsman.domain.repos.repo_catalog import Repo
    from draftsman.domain.trello.board import BoardConfig
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.main import MainScreen


async def set_default_repo(desk: MainScreen, text: str) -> None:
    """Let the repository be the one of requests that say nothing; or none, if it is."""
    repo = _repo(desk)
    await desk.rt.repos.set_default(None if repo.is_default else repo, desk.actor)
    said = "no repository is the default" if repo.is_default else f"they mean {repo.full_name}"
    desk.show_message(f"requests that say nothing: {said}")


async def map_label(desk: MainScreen, text: str) -> None:
    """Let a label stand for the repository, or for a folder of it: `payments //services/api`."""
    repo = _repo(desk)
    given = text or await desk.ask(
        PromptDialog(f"Which label stands for {repo.full_name}?", "payments")
    )
    if not given:
        return
    label, _, folder = given.partition("//")
    place = await desk.rt.repos.place(f"{repo.full_name}//{folder}" if folder else repo.remote_url)
    await desk.rt.repos.map(place, desk.actor, label=label.strip())
    desk.show_message(f"label {label.strip()} stands for {place.name}")


async def unmap_label(desk: MainScreen, text: str) -> None:
    """Let a label stand for the repository no more."""
    repo = _repo(desk)
    there = [
        one.trello_label_name or one.trello_label_id or ""
        for one in (await desk.rt.repos.catalog()).mappings
        if one.repo == repo.id
    ]
    if not there:
        raise Refused(f"no label stands for {repo.full_name}")
    label = text or await desk.ask(ChoiceDialog("Which label?", [(name, name) for name in there]))
    if label:
        await desk.rt.repos.unmap(label, desk.actor, repo)
        desk.show_message(f"label {label} does not stand for {repo.full_name} any more")


async def remove_repo(desk: MainScreen, text: str) -> None:
    """Forget the repository."""
    repo = _repo(desk)
    note = "With its labels and its profiles; its jobs stay, and so does the work."
    if await desk.ask(ConfirmDialog(f"Forget {repo.full_name}?", note)):
        await desk.rt.repos.remove(repo, desk.actor)
        desk.show_message(f"{repo.full_name} is not known any more")


async def remove_board(desk: MainScreen, text: str) -> None:
    """Watch the board no more."""
    board = cast("BoardConfig | None", desk.table.row)
    if board is None:
        raise Refused("choose a board first")
    note = "Its jobs stay, and so do the comments on its cards."
    if await desk.ask(ConfirmDialog(f"Watch {board.name} no more?", note)):
        await desk.rt.boards.remove(board.board_id, desk.actor)
        left = await remove_webhook(desk.rt, board)
        desk.show_message(f"{board.name} is not watched any more" + (f"; {left}" if left else ""))


async def people(desk: BaseScreen, text: str) -> None:
    """Show who is who, and which identities of chat were joined to them."""
    lines = [
        f"{name}  {', '.join(sorted(person.roles)) or 'no role'}  "
        + ", ".join(f"{channel}:{id}" for channel, id in person.ids.items())
        for name, person in sorted(desk.rt.policy.people.items())
    ]
    lines += [
        f"{one.person}  {one.channel}:{one.external_id} ({one.display_name})"
        f" joined {times.ago(one.linked_at)} by {one.linked_by}"
        for one in await desk.rt.people.links()
    ]
    nobody = "nobody is configured: add [people.NAME], or send /draftsman link in Slack"
    await desk.app.push_screen(TextDialog("people", "\n".join(lines) or nobody))


async def link(desk: BaseScreen, text: str) -> None:
    """Join the identity of chat that was given a code to you."""
    code = text or await desk.ask(PromptDialog("The code that chat said?", "K7PQ2MXWAB"))
    if code:
        made = await desk.rt.people.link(code, desk.actor)
        desk.show_message(f"{made.channel}:{made.external_id} is {made.person} from now on")


async def unlink(desk: BaseScreen, text: str) -> None:
    """Part an identity of chat from its person."""
    if not text:
        found = [f"{one.channel}:{one.external_id}" for one in await desk.rt.people.links()]
        if not found:
            raise Refused("no identity was joined to anybody")
        text = (
            await desk.ask(ChoiceDialog("Part which identity?", [(one, one) for one in found]))
            or ""
        )
    name, _, id = text.partition(":")
    if text and (name not in (Source.SLACK, Source.TRELLO) or not id):
        raise UsageError(f"{text[:60]!r}: give slack:ID or trello:ID, as :people shows it")
    sure = bool(text) and await desk.ask(ConfirmDialog(f"Part {text} from its person?", ""))
    if sure:
        person = await desk.rt.people.unlink(Source(name), id, desk.actor)
        desk.show_message(f"{text} is {person} no longer")


async def sweep(desk: BaseScreen, text: str) -> None:
    """Do now what the leader does from time to time."""
    known = list(desk.rt.sweeps.names)
    name = text or await desk.ask(ChoiceDialog("Sweep what?", [(one, one) for one in known]))
    if name:
        count = await desk.rt.sweeps.run_now(name, desk.actor)
        desk.show_message(f"{name}: changed {count:,} row{'' if count == 1 else 's'}")


async def restore(desk: BaseScreen, text: str) -> None:
    """Bring an archived month of the trail back, from a file of this machine."""
    if not text:
        text = await desk.ask(ChoiceDialog("Bring back which month?", await _archives(desk))) or ""
    if not text:
        return
    path = Path(text).expanduser()
    if not path.is_file():
        raise UsageError(
            f"{text[:200]}: no such file here; it is where the leader that made it ran"
        )
    content = await desk.rt.archives.check(path)
    what = f"{content.events:,} events of {content.month:%Y-%m}"
    if await desk.ask(
        ConfirmDialog(f"Bring back {what}?", "With the same retention they go again.")
    ):
        await desk.rt.archives.restore(path, desk.actor)
        desk.show_message(f"restored {what}")


async def _archives(desk: BaseScreen) -> list[tuple[str, str]]:
    """Return what is said of each month that left, and its file."""
    found = await desk.rt.archives.all()
    if not found:
        raise Refused("no month of the trail was pruned")
    return [(f"{one.month:%Y-%m}  {one.path}", str(one.path)) for one in found]


def _repo(desk: MainScreen) -> Repo:
    repo = cast("Repo | None", desk.table.row)
    if repo is None:
        raise Refused("choose a repository first")
    return repo
