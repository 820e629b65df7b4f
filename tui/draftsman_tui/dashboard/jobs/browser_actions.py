"""Web pages of a row: ticket, pull request, repository and message threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.errors import Refused
from draftsman_tui.dashboard.dialogs.choice_dialog import ChoiceDialog
from draftsman_tui.entities.job_pages import is_web_url, pages_of

if TYPE_CHECKING:
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen


async def browse(screen: BaseScreen, text: str) -> None:
    """Open a page of the row in the browser, asking which if there are several."""
    numbers = screen.jobs(optional=True)
    pages = [("page", screen.page_url)] if screen.page_url and not numbers else []
    pages = [(title, url) for title, url in pages if is_web_url(url)]
    if numbers:
        pages += await pages_of(screen.rt, numbers[0])
    choices = [
        (f"{title}  {url}", url)
        for title, url in pages
        if title.startswith("pull" if text == "pr" else text)
    ]
    if not choices:
        raise Refused(f"this row has no {text or 'web page'} to open")
    several = len(choices) > 1
    url = await screen.ask(ChoiceDialog("Open which page?", choices)) if several else choices[0][1]
    if url is not None:
        screen.app.open_url(url)
        screen.show_message(f"Opened {url}")
