"""What is done to jobs and deliveries, by the services that the command line uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from draftsman.errors import Refused
from draftsman_tui.cli.artifacts import PATCH
from draftsman_tui.dashboard.screens.confirm import Confirm
from draftsman_tui.dashboard.screens.text import Page

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman_tui.dashboard.screens.desk import Desk

TOLD: Final = 5
"""Names that a message lists; the rest is counted."""


async def cancel(desk: Desk, text: str) -> None:
    """End the chosen jobs."""
    numbers = desk.jobs()
    if not await desk.ask(Confirm(f"Cancel {_names(numbers)}?", "What they did is kept.")):
        return
    done = []
    for number in numbers:
        with desk.said():
            done.append(await desk.rt.operate.cancel(number, desk.actor, text or None))
    told = [one.number for one in done if one.requested]
    ended = [one.number for one in done if not one.requested]
    if ended:
        desk.say(f"{_names(ended)} canceled")
    if told:
        desk.say(f"{_names(told)} told to stop")


async def retry(desk: Desk, text: str) -> None:
    """Make new jobs of the chosen ones."""
    numbers = desk.jobs()
    if len(numbers) > 1 and not await desk.ask(Confirm(f"Retry {_names(numbers)}?", "")):
        return
    made: list[str] = []
    new: list[int] = []
    async for one in desk.rt.retries.retry(numbers, desk.actor):
        if one.made is None:
            desk.refuse(one.error or f"D-{one.retry_of} cannot be retried")
        else:
            how = "" if one.made.how == "created" else ", made before"
            made.append(f"D-{one.retry_of} goes on as D-{one.made.number}{how}")
            new.append(one.made.number)
    if made:
        desk.say("; ".join(made[:TOLD]) + (f" and {len(made) - TOLD} more" if made[TOLD:] else ""))
    await desk.retried(new)


async def why(desk: Desk, text: str) -> None:
    """Say what the job waits for."""
    number = desk.jobs()[0]
    found = await desk.rt.inspect.why(number)
    await desk.app.push_screen(Page(f"D-{number} {found.status}", f"{found.text}\n\n{found.then}"))


async def diff(desk: Desk, text: str) -> None:
    """Show the changes that the job made."""
    await desk.changes(desk.jobs()[0])


async def redeliver(desk: Desk, text: str) -> None:
    """Send the chosen deliveries again."""
    seqs = desk.deliveries
    if not seqs:
        raise Refused("choose a delivery first")
    if len(seqs) > 1 and not await desk.ask(Confirm(f"Send {len(seqs)} deliveries again?", "")):
        return
    revived = await desk.rt.outbox.redeliver(seqs, desk.actor)
    desk.say(f"{len(revived)} to be sent again")


async def copy(desk: Desk, text: str) -> None:
    """Copy the ids of the chosen rows, by the terminal's own clipboard (OSC 52)."""
    keys = desk.ids
    if not keys:
        raise Refused("there is nothing to copy")
    desk.app.copy_to_clipboard(" ".join(keys))
    desk.say(f"copied {', '.join(keys[:TOLD])}" + (", …" if keys[TOLD:] else ""))


async def browse(desk: Desk, text: str) -> None:
    """Open the page of the row; of a job with several the one that is named."""
    address = desk.address if not text else desk.addresses.get(text)
    if address is None and (numbers := desk.jobs(optional=True)):
        address = (await desk.rt.inspect.job(numbers[0])).ticket_url
    if not address or not address.startswith(("https://", "http://")):
        raise Refused("this row has no page to open")
    desk.app.open_url(address)
    desk.say(f"opened {address}")


async def patch(rt: Runtime, number: int) -> str | None:
    """Return the changes that a job made so far, None where it made none."""
    if not any(one.name == PATCH for one in await rt.checkpoints.artifacts(number)):
        return None
    _, data = await rt.checkpoints.read_artifact(number, PATCH)
    return data.decode("utf-8", "replace")


def _names(numbers: Sequence[int]) -> str:
    shown = ", ".join(f"D-{number}" for number in numbers[:TOLD])
    return shown + (f" and {len(numbers) - TOLD} more" if numbers[TOLD:] else "")
