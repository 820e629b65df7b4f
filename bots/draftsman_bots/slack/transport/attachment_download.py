"""Downloads of attachments: files of Slack, and the messages of a thread with their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from draftsman.errors import Failure
from draftsman.formats.times import format_time
from draftsman.jobs.requests.attachments import MAX_BYTES, MAX_FILES, PendingFile
from draftsman_bots.conversation.attachments import FileRefused, WithFiles
from draftsman_bots.json_fields import nested, objects, string
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.payloads.payloads import SlackFile, SlackMessage, readable_text
from draftsman_bots.slack.transport.api_errors import translate
from draftsman_bots.slack.transport.web_api import WebApi

# Download of a file of Slack, with the token of the bot, and only from Slack.


HOSTS: Final = ("slack.com", "slack-gov.com")
"""Domains of Slack, whose hosts get the token; also the host of `api_url`."""
TRANSIENT: Final = frozenset({408, 425, 429})
"""Statuses besides 5xx after which a download is tried again."""
NO_PAGE: Final = (
    "Slack sent a page instead of the file: the app lacks files:read, or may not see the file"
)


async def download_file(web_api: WebApi, file: str) -> bytes:
    """Return the content of a file; raises FileRefused, and Failure for another attempt.

    The object of an event may lack the URL (`check_file_info`), so it is always requested.
    """
    response = await web_api.read("files.info", web_api.web.files_info(file=file))
    if isinstance(response, Failure):
        if response.http_status == 429 or response.code in ("connect", "no_reply"):
            raise response
        raise FileRefused(f"Slack refused it: {response}")
    info = SlackFile.model_validate(nested(response, "file"))
    if info.unavailable is not None:
        raise FileRefused(info.unavailable)
    if (info.size or 0) > MAX_BYTES:
        raise FileRefused(f"a file has at most {MAX_BYTES:,} bytes")
    if not is_of_slack(info.url, web_api.web.base_url):
        raise FileRefused("its address is not a host of Slack")
    return await _get(web_api, info)


def is_of_slack(url: str, api_url: str) -> bool:
    """Return whether a URL may get the token: HTTPS to Slack, or the configured API server."""
    try:
        address = urlsplit(url)
        api = urlsplit(api_url)
        if address.username is not None or address.password is not None:
            return False
        if (address.scheme, address.hostname, address.port) == (api.scheme, api.hostname, api.port):
            return True
        host = address.hostname or ""
        is_slack_host = any(host == domain or host.endswith(f".{domain}") for domain in HOSTS)
        return is_slack_host and address.scheme == "https" and address.port in (None, 443)
    except ValueError:
        return False


async def _get(web_api: WebApi, file: SlackFile) -> bytes:
    headers = {"Authorization": f"Bearer {web_api.web.token}"}
    limit = aiohttp.ClientTimeout(total=web_api.timeout)
    proxy = web_api.web.proxy
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(file.url, headers=headers, proxy=proxy, allow_redirects=False) as response,
        ):
            if response.status in TRANSIENT or response.status >= 500:
                raise Failure(f"HTTP {response.status}: download", origin="slack")
            if 300 <= response.status < 400:
                raise FileRefused(NO_PAGE)
            if response.status != 200:
                raise FileRefused(f"Slack answered HTTP {response.status}")
            content = await _read(response)
            is_page = response.content_type in ("text/html", "application/xhtml+xml")
    except (FileRefused, Failure):
        raise
    except Exception as error:
        failure = translate(error, "download", writes=False)
        raise failure if isinstance(failure, Failure) else Failure("download") from None
    if is_page and (file.mimetype != "text/html" or len(content) != file.size):
        raise FileRefused(NO_PAGE)
    return content


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        data += chunk
        if len(data) > MAX_BYTES:
            raise FileRefused(f"a file has at most {MAX_BYTES:,} bytes")
    return bytes(data)


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
    channel = string(file.reference, "channel")
    thread = string(file.reference, "thread")
    messages = await _thread(web_api, channel, thread, string(file.reference, "before"))
    bot = identity.bot_user
    people = [message for message in messages if not bot or message.user != bot]
    files = [file for message in people for file in message.files]
    return WithFiles("\n\n".join(_lines(messages))[:MAX_TEXT].encode(), files[:MAX_FILES])


async def _thread(web_api: WebApi, channel: str, thread: str, before: str) -> list[SlackMessage]:
    """Return the messages of a thread before a request, oldest first."""
    messages: dict[str, SlackMessage] = {}
    args = {"channel": channel, "ts": thread, **({"latest": before} if before else {})}
    async for page in web_api.pages("conversations.replies", **args):
        if isinstance(page, Failure):
            if page.http_status == 429 or page.code in ("connect", "no_reply"):
                raise page
            raise FileRefused(f"Slack refused the messages of the thread: {page}")
        for message in map(SlackMessage.model_validate, objects(page, "messages")):
            if not before or message.ts < before:
                messages[message.ts] = message
        messages = dict(list(messages.items())[-MAX_MESSAGES:])
    return list(messages.values())


def _lines(messages: Sequence[SlackMessage]) -> Iterator[str]:
    yield "# Messages of the Slack thread before the request"
    for message in messages:
        names = ", ".join(file.name for file in message.files)
        paragraphs = [readable_text(message.text), f"(files: {names})" if names else ""]
        author = message.user or message.username or "unknown"
        text = "\n".join(paragraph for paragraph in paragraphs if paragraph.strip())
        yield f"## {author}, {_time(message.ts)}\n\n{text}"


def _time(ts: str) -> str:
    try:
        return format_time(datetime.fromtimestamp(float(ts), UTC))
    except (ValueError, OverflowError, OSError):
        return "unknown time"
