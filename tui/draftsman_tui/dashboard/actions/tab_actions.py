"""Commands that are about what is seen of one job: parts, items, the next job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from draftsman.domain.ids import actor_name
from draftsman.domain.messages.plain_text import resolution_text
from draftsman.errors import Refused, UsageError
from draftsman_tui.common.output import as_data
from draftsman_tui.dashboard.actions import question_actions
from draftsman_tui.dashboard.dialogs.text_dialog import TextDialog

if TYPE_CHECKING:
    from draftsman_tui.dashboard.screens.base import BaseScreen
    from draftsman_tui.dashboard.screens.job import JobScreen

MAX_TEXT: Final = 100_000
"""Characters of a file that are shown."""


async def log(desk: BaseScreen, text: str) -> None:
    """Follow the log of the job, of all runs or of one."""
    from draftsman_tui.dashboard.screens.job import JobScreen

    run = text.rpartition(".")[2]
    if text not in ("", "all") and not run.isdecimal():
        raise UsageError(f"{text!r} is no run; give its number, or all")
    if isinstance(desk, JobScreen):
        desk.show_run(int(run) if run.isdecimal() else None)
    else:
        desk.open_job(desk.jobs()[0], "log")


async def previous_tab(screen: JobScreen, text: str) -> None:
    """Show the part to the left."""
    screen.turn(-1)


async def next_tab(screen: JobScreen, text: str) -> None:
    """Show the part to the right."""
    screen.turn(1)


async def follow(screen: JobScreen, text: str) -> None:
    """Keep the end in view, of the log where the part has none."""
    if screen.part not in ("log", "timeline"):
        screen.show_part("log")
    screen.lines.follow()


async def find(screen: JobScreen, text: str) -> None:
    """Show only what says this, or let it be typed."""
    if text:
        screen.narrow(text)
    else:
        screen.type("/", screen.words, lambda _: ())


async def back(screen: JobScreen, text: str) -> None:
    """Show everything again; then go back to the table."""
    if screen.words:
        screen.narrow("")
    else:
        screen.app.pop_screen()


async def next_job(screen: JobScreen, text: str) -> None:
    """Show the job of the next row of the table."""
    _step(screen, 1)


async def previous_job(screen: JobScreen, text: str) -> None:
    """Show the job of the row before."""
    _step(screen, -1)


async def open_item(screen: JobScreen) -> None:
    """Open what the cursor is on."""
    seen, key = screen.seen, screen.chosen
    if seen is None or key is None:
        raise Refused("there is nothing to open here")
    match screen.part:
        case "questions" if screen.question is not None:
            await question_actions.answer(screen, "")
        case "questions":
            asked = next(one for one in seen.questions if one.name == key)
            context = asked.context_snippet or "it came without more"
            _page(screen, f"{key} {resolution_text(asked)}", f"{asked.text}\n\n{context}")
        case "timeline":
            event = next(one for one in seen.events if key.endswith(f"#{one.id}"))
            _page(
                screen, f"{event.kind}, by {actor_name(event.actor)}", format_fields(event.payload)
            )
        case "deliveries":
            one = next(one for one in seen.deliveries if str(one.seq) == key)
            _page(screen, f"delivery {key}", format_fields(as_data(one)))
        case "runs" | "usage":
            screen.show_run(int(key.rpartition(".")[2]))
        case "chain":
            screen.open_job(int(key.removeprefix("D-")), "timeline")
        case "artifacts" if "/" in key:
            run, _, name = key.partition("/")
            kinds = [one.kind for one in seen.files if (str(one.run), one.name) == (run, name)]
            if kinds == ["patch"]:
                screen.show_part("diff")
            else:
                await _file(screen, name)


async def _file(screen: JobScreen, name: str) -> None:
    _, data = await screen.rt.checkpoints.read_artifact(screen.number, name, most=1)
    get = f"draftsman artifacts get D-{screen.number} {name}"
    if b"\0" in data:
        raise Refused(f"{name} is not text; get it: {get}")
    text = data.decode("utf-8", "replace")
    more = f"\n… cut here; the whole: {get}" if len(text) > MAX_TEXT else ""
    await screen.app.push_screen(TextDialog(name, text[:MAX_TEXT] + more))


def format_fields(fields: Mapping[str, Any]) -> str:
    """Return fields, one a line; texts of several lines below their names, as they are."""
    lines = []
    for key, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        lines.append(f"{key}:\n{text}\n" if "\n" in text else f"{key}: {text}")
    return "\n".join(lines) or "it has no details"


def _page(screen: JobScreen, title: str, text: str) -> None:
    screen.app.push_screen(TextDialog(title, text[:MAX_TEXT]))


def _step(screen: JobScreen, by: int) -> None:
    number = screen.tables.step(by, screen.number)
    if number is None:
        raise Refused(f"this is the {'last' if by > 0 else 'first'} job of the table")
    screen.open_job(number, screen.part)
