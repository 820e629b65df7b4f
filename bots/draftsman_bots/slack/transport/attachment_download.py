"""Downloads of attachments: files of Slack, and the messages of a thread with their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.jobs.requests.attachments import MAX_FILES, PendingFile
from draftsman_bots.conversation.attachments import FileRefused, WithFiles
from draftsman_bots.json_fields import objects, string
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.payloads.files import parse_files
from draftsman_bots.slack.payloads.incoming_text import readable_text
from draftsman_bots.slack.transport.file_download import download_file
from draftsman_bots.slack.transport.web_api import WebApi

MAX_MESSAGES: Final = 200
"""Messages of a thread, the newest before the request."""
MAX_TEXT: Final = 200_000
"""Characters of the file with the messages of a thread."""


async def download(web_api: WebApi, identity: Identity, file: PendingFile) -> bytes | WithFiles:
    """Return the content of a file, or the messages of a thread with the files of people.

    Raises FileRefused and Failure.
    """
    if (file_id := string(file.reference, "file")) != "":
        return await download_file(web_api, file_id)
    channel, thread = (string(file.reference, name) for name in ("channel", "thread"))
    messages = await _thread(web_api, channel, thread, string(file.reference, "before"))
    bot = identity.bot_user
    people = [message for message in messages if not bot or string(message, "user") != bot]
    files = [ref for message in people for ref in parse_files(message)]
    return WithFiles("\n\n".join(_lines(messages))[:MAX_TEXT].encode(), files[:MAX_FILES])


async def _thread(web_api: WebApi, channel: str, thread: str, before: str) -> list[dict[str, Any]]:
    """Return the messages of a thread before a request, oldest first."""
    messages: dict[str, dict[str, Any]] = {}
    args = {"channel": channel, "ts": thread, **({"latest": before} if before else {})}
    async for page in web_api.pages("conversations.replies", **args):
        if isinstance(page, Failure):
            if page.http_status == 429 or page.code in ("connect", "no_reply"):
                raise page
            raise FileRefused(f"Slack refused the messages of the thread: {page}")
        for message in objects(page, "messages"):
            if not before or string(message, "ts") < before:
                messages[string(message, "ts")] = message
        messages = dict(list(messages.items())[-MAX_MESSAGES:])
    return list(messages.values())


def _lines(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "# Messages of the Slack thread before the request"
    for message in messages:
        names = ", ".join(ref.name for ref in parse_files(message))
        parts = [readable_text(string(message, "text")), f"(files: {names})" if names else ""]
        author = string(message, "user") or string(message, "username") or "unknown"
        text = "\n".join(part for part in parts if part.strip())
        yield f"## {author}, {_time(string(message, 'ts'))}\n\n{text}"


def _time(ts: str) -> str:
    try:
        return datetime.fromtimestamp(float(ts), UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return "unknown time"
