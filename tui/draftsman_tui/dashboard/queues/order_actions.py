"""Commands on the order of queued jobs: move and prioritize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.errors import UsageError
from draftsman.ids import job_name, parse_job
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog
from draftsman_tui.dashboard.frame.bulk import report_bulk, run_bulk

if TYPE_CHECKING:
    from draftsman.queues.service.queues import Place
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen

ENDS: Final[dict[str, Place]] = {"top": "top", "bottom": "bottom"}
SIDES: Final[dict[str, Place]] = {"before": "before", "after": "after"}
USAGE: Final = "move: enter top, bottom, before D-2 or after D-2"


async def move(screen: BaseScreen, text: str) -> None:
    """Move the selected job; `text` is `top`, `bottom`, `before D-2` or `after D-2`."""
    number = screen.jobs()[0]
    if not text:
        choices = [
            ("to the top of its queue", "top"),
            ("to the bottom of its queue", "bottom"),
            ("before another job …", "before"),
            ("after another job …", "after"),
        ]
        text = await screen.ask(ChoiceDialog(f"Move {job_name(number)}?", choices)) or ""
        if text in SIDES:
            other = await screen.ask(PromptDialog(f"Move {job_name(number)} {text} which job?", ""))
            text = f"{text} {other}" if other else ""
        if not text:
            return
    word, _, name = text.strip().partition(" ")
    if word in ENDS and not name:
        await screen.rt.queues.move(number, ENDS[word], screen.actor)
    elif word in SIDES and name.strip():
        anchor = await screen.rt.read_model.resolve(parse_job(name.strip()))
        await screen.rt.queues.move(number, SIDES[word], screen.actor, anchor)
    else:
        raise UsageError(USAGE)
    screen.show_message(f"Moved {job_name(number)} {text}")


async def prioritize(screen: BaseScreen, text: str) -> None:
    """Change the priority of the selected jobs."""
    numbers = screen.jobs()
    text = text or await screen.ask(PromptDialog("Priority, from -1000 to 1000?", "0")) or ""
    if not text:
        return
    try:
        priority = int(text)
    except ValueError:
        raise UsageError(f"priority {text[:20]!r}: expected a whole number") from None

    async def change(number: int) -> None:
        await screen.rt.queues.prioritize(number, priority, screen.actor)

    bulk = await run_bulk(screen, "Prioritizing", numbers, change)
    report_bulk(screen, bulk, f"now with priority {priority}")
