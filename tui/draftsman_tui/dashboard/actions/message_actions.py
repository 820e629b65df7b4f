"""The command that sends a message to the agent of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.ids import job_name
from draftsman_tui.dashboard.dialogs.prompt_dialog import PromptDialog

if TYPE_CHECKING:
    from draftsman.domain.job_message import SentMessage
    from draftsman_tui.dashboard.screens.base import BaseScreen


async def tell(screen: BaseScreen, text: str) -> None:
    """Send a message to the agent of the selected job; asks for the text unless it is given."""
    number = screen.jobs()[0]
    if not text:
        await screen.rt.messages.check(number, screen.actor)

    async def send(message: str) -> SentMessage:
        return await screen.rt.messages.send(number, screen.actor, message)

    dialog = PromptDialog(f"Message to the agent of {job_name(number)}?", "use the v2 API", send)
    if (sent := await (send(text) if text else screen.ask(dialog))) is not None:
        screen.show_message(f"M{str(sent)[1:]}")
