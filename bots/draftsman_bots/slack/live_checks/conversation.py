"""Live checks of files, reactions and the conversation with the agent."""

from __future__ import annotations

import hashlib
from typing import Final

from draftsman.deliveries.channels.live_check import (
    AssumptionBroken,
    LiveCheck,
    NotTried,
    require,
)
from draftsman_bots.conversation.attachments import FileRefused
from draftsman_bots.json_fields import nested, objects, string
from draftsman_bots.slack.live_checks.place import ScratchChannel
from draftsman_bots.slack.live_checks.threads import NO_AGENT
from draftsman_bots.slack.questions.reactions import canonical
from draftsman_bots.slack.requests.suggested_prompts import MAX_PROMPTS, MAX_TEXT, MAX_TITLE
from draftsman_bots.slack.transport.attachment_download import download_file

CONTENT: Final = b"draftsman live check: the content of a file\n" * 3
SUGGEST: Final = "assistant.threads.setSuggestedPrompts"


async def _download(place: ScratchChannel) -> str:
    file = await _upload(place)
    try:
        content = await download_file(place.web_api, file)
    except FileRefused as refused:
        raise AssumptionBroken(f"draftsman refused it: {refused}") from None
    require(content == CONTENT, f"the content is another, of {len(content)} bytes")
    info = nested(await place.call("files.info", file=file), "file")
    url = string(info, "url_private_download") or string(info, "url_private")
    async with place.http.get(url, allow_redirects=False) as response:
        is_file = response.status == 200 and await response.read() == CONTENT
        require(not is_file, "the file is readable without the token")
        return f"the file was downloaded; without the token: HTTP {response.status}"


async def _upload(place: ScratchChannel) -> str:
    """Upload a file, to be deleted at the end; return its id."""
    size = {"filename": "live-check.txt", "length": str(len(CONTENT))}
    reply = await place.call("files.getUploadURLExternal", **size)
    file = str(reply["file_id"])
    if (failure := await place.web_api.put(str(reply["upload_url"]), CONTENT)) is not None:
        raise failure

    async def delete() -> None:
        await place.call("files.delete", file=file)

    # it is not shared with the channel: a message with a deleted file would remain
    call = place.call("files.completeUploadExternal", files=[{"id": file, "title": "live check"}])
    await place.session.removals.created("a file", call, lambda _: (f"file {file}", delete))
    return file


async def _id_only(place: ScratchChannel) -> str:
    page = await place.call("conversations.history", channel=place.channel, limit="100")
    files = [file for message in objects(page, "messages") for file in objects(message, "files")]
    limited = [file for file in files if file.get("file_access") == "check_file_info"]
    if not limited:
        raise NotTried("needs a channel with a file of another organization (Slack Connect)")
    file = string(limited[0], "id")
    try:
        content = await download_file(place.web_api, file)
    except FileRefused as refused:
        raise AssumptionBroken(f"draftsman refused it: {refused}") from None
    return f"a file of {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()[:12]}"


async def _reaction(place: ScratchChannel) -> str:
    channel, ts = await place.post("reaction-names")
    place.session.request(
        f"Open {place.link((channel, ts))}, and react with a thumbs-up in a dark skin tone."
        " Is it there?"
    )
    page = await place.call("reactions.get", channel=channel, timestamp=ts, full="true")
    names = [string(item, "name") for item in objects(nested(page, "message"), "reactions")]
    require(names, "the message has no reaction")
    require([*map(canonical, names)] == ["+1"], f"the names are {names}")
    return f"the name is {names[0]}"


async def _opened_tab(place: ScratchChannel) -> str:
    if not place.identity.is_agent:
        raise NotTried(NO_AGENT)
    place.session.look(
        "While draftsman bots runs, open the tab Messages of the app in Slack: does it suggest"
        " prompts?"
    )
    return "the person saw prompts"


async def _prompts(place: ScratchChannel) -> str:
    if not place.identity.is_agent:
        raise NotTried(NO_AGENT)
    prompts = [
        {"title": f"{number} ".ljust(MAX_TITLE, "t"), "message": "list ".ljust(MAX_TEXT, "m")}
        for number in range(MAX_PROMPTS)
    ]
    channel = await place.direct()
    await place.assumed(place.call(SUGGEST, channel_id=channel, prompts=prompts))
    return f"{MAX_PROMPTS} prompts of {MAX_TITLE} and {MAX_TEXT} characters were accepted"


CHECKS: Final = (
    LiveCheck(
        name="file-download",
        assumption="A file is at `url_private_download` of `files.info`, with the token; without"
        " access there is a redirect or a page",
        otherwise="The file is refused with the reason, which the agent and `draftsman show` have;"
        " the job runs without it.",
        run=_download,
    ),
    LiveCheck(
        name="file-with-id-only",
        assumption="A file of an event with an id only (`file_access: check_file_info`, Slack"
        " Connect) is in `files.info`",
        otherwise="The file is refused with the reason.",
        run=_id_only,
    ),
    LiveCheck(
        name="reaction-names",
        assumption="`reaction_added` and `reaction_removed` have the names of emoji, an alias and"
        " a skin tone: `+1::skin-tone-5`",
        otherwise="The question stays open; its buttons work.",
        run=_reaction,
    ),
    LiveCheck(
        name="opened-tab",
        assumption="With `agent_view`, opening the *Messages* tab sends `app_home_opened`",
        otherwise="No prompts are suggested; messages are requests as before.",
        run=_opened_tab,
    ),
    LiveCheck(
        name="suggested-prompts",
        assumption="`assistant.threads.setSuggestedPrompts` needs no `thread_ts`, and takes prompts"
        " of 75 and 1,000 characters",
        otherwise="No prompts are suggested.",
        run=_prompts,
    ),
)
