"""The pages of a row: what it is about, where it was said, what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from draftsman.domain.messages.delivery import ChannelName, Delivery
from draftsman.errors import Refused
from draftsman_tui.common.delivery_text import target_text
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog

if TYPE_CHECKING:
    from draftsman.domain.job import Job
    from draftsman_tui.dashboard.screens.base import BaseScreen

Page = tuple[str, str]
"""What is said of a page, and its address."""


async def browse(desk: BaseScreen, text: str) -> None:
    """Open the page of the row: the one that is named; of several, ask which."""
    numbers = desk.jobs(optional=True)
    pages = [("page", desk.address)] if desk.address and not numbers else []
    if numbers:
        job = await desk.rt.read_model.job(numbers[0])
        said = await desk.rt.outbox.all(job.number)
        slack = desk.rt.settings.slack
        pages += [*job_pages(job), *message_pages(said, slack.team if slack else None)]
    found = {address: name for name, address in reversed(pages) if _is_page(address)}
    choices = [
        (f"{name}  {address}", address)
        for address, name in reversed(found.items())
        if name.startswith("pull" if text == "pr" else text)
    ]
    if not choices:
        raise Refused(f"this row has no {text or 'page'} to open")
    several = len(choices) > 1
    address = (
        await desk.ask(ChoiceDialog("Open which page?", choices)) if several else choices[0][1]
    )
    if address is not None:
        desk.app.open_url(address)
        desk.show_message(f"opened {address}")


def job_pages(job: Job) -> Iterator[Page]:
    """Yield what came of a job, and what asked for it."""
    made = (job.result or {}).get("pr_url")
    if isinstance(made, str):
        yield "pull request", made
    if job.ticket_url:
        yield "ticket", job.ticket_url
    place = job.payload.get("repo")
    source = place.get("source") if isinstance(place, dict) else None
    if isinstance(source, str) and source.startswith("https://"):
        yield "repository", source.removesuffix(".git")


def message_pages(said: Iterable[Delivery], team: str | None = None) -> Iterator[Page]:
    """Yield where people were told, the place of each once, by its first message."""
    places: dict[str, Page] = {}
    for one in said:  # the newest first: what is left of each place is its first message
        if address := _address(one, team):
            places[target_text(one)] = (f"thread at {target_text(one)}", address)
    yield from places.values()


def _address(one: Delivery, team: str | None) -> str | None:
    """Return the page of one message; that of Slack sends who is signed in on to the message."""
    match one.channel:
        case ChannelName.SLACK if one.external_ref:
            channel, _, ts = one.external_ref.partition("/")
            fields = {"channel": channel, "message_ts": ts, "team": team}
            given = {name: value for name, value in fields.items() if value}
            return f"https://slack.com/app_redirect?{urlencode(given)}"
        case ChannelName.TRELLO:
            anchor = f"#comment-{quote(one.external_ref)}" if one.external_ref else ""
            return f"https://trello.com/c/{quote(one.target)}{anchor}"
        case _:
            return None


def _is_page(address: str | None) -> bool:
    """Return whether a browser may be sent there: what people wrote may be anything."""
    try:
        parts = urlsplit(address or "")
        return parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        return False
