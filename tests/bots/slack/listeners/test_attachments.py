"""Files and threads of requests: attachments of their jobs, downloaded with the bot's token."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from draftsman.jobs.requests.attachments import MAX_BYTES, JobAttachment
from draftsman_bots.slack.requests.job_requests import NO_SCOPE
from draftsman_bots.slack.transport.attachment_download import NO_PAGE, is_of_slack
from draftsman_testing.waits import until
from tests.bots.slack.listeners.conftest import ANNA, BEN, SlackBotHarness
from tests.bots.slack.listeners.test_thread_messages import running
from tests.support.cases import cases

SLACK_API: Final = "https://slack.com/api/"


async def ended(bench: SlackBotHarness, number: int) -> list[JobAttachment]:
    """Return the attachments of a job once the bot has downloaded them."""
    task = asyncio.create_task(bench.ctx.downloads.run())

    async def are_ended() -> bool:
        bench.ctx.downloads.wake()
        items = await bench.rt.attachments.of_job(number)
        return all(item.status != "pending" for item in items)

    await until(are_ended, "the end of the downloads")
    bench.ctx.downloads.stop.set()
    await task
    return await bench.rt.attachments.of_job(number)


async def ask(bench: SlackBotHarness, *files: Any, **options: Any) -> int:
    """Request a job with files; return its number."""
    more = {"subtype": "file_share", "files": list(files)}
    text = f"<@{bench.slack.bot_user}> fix the colors"
    await bench.slack.say(ANNA, bench.general, text, more=more, **options)
    (job, *_) = await bench.rt.read_model.jobs()
    return job.number


async def full(bench: SlackBotHarness) -> None:
    """Let the bot learn the scopes of the full manifest."""
    bench.ctx.identity.read_scopes((await bench.ctx.client.auth_test()).headers)


async def test_the_files_of_a_request_reach_its_job(bench: SlackBotHarness) -> None:
    notes = bench.slack.file(ANNA, "notes.md", b"use blue", "text/markdown")
    image = bench.slack.file(ANNA, "screen shot.png", b"\x89PNG", "image/png")
    number = await ask(bench, notes, image, copies=2)
    items = await ended(bench, number)
    assert [(item.name, item.status, item.media_type) for item in items] == [
        ("notes.md", "stored", "text/markdown"),
        ("screen_shot.png", "stored", "image/png"),
    ]
    assert await bench.rt.attachments.content(items[0]) == b"use blue"
    assert bench.slack.bot_token not in str([call.args for call in bench.slack.world.calls])


async def test_files_without_content_are_refused_with_the_reason(bench: SlackBotHarness) -> None:
    say = bench.slack.file
    remote = say(ANNA, "plan", b"", mode="external", is_external=True, url_private="https://x.test")
    deleted = say(ANNA, "gone.txt", b"x", mode="tombstone")
    bare = {"id": say(ANNA, "b.txt", b"shared")["id"], "file_access": "check_file_info"}
    elsewhere = say(ANNA, "c.txt", b"x", url_private_download="https://files.slack.com.evil.test/")
    large = say(ANNA, "d.bin", bytes(MAX_BYTES + 1), size=5)
    lost = {"id": "F0UNKNOWN", "name": "e.txt"}
    items = await ended(bench, await ask(bench, remote, deleted, bare, elsewhere, large, lost))
    reasons = [item.reason for item in items]
    assert reasons[:4] == [
        "it is a link to another service, not a file in Slack",
        "it was deleted",
        None,
        "its address is not a host of Slack",
    ]
    assert reasons[4] == "a file has at most 10,485,760 bytes"
    assert (reasons[5] or "").startswith("Slack refused it: file_not_found")
    assert await bench.rt.attachments.content(items[2]) == b"shared"


async def test_a_page_instead_of_the_file_is_not_the_file(bench: SlackBotHarness) -> None:
    page = bench.slack.file(ANNA, "page.html", b"<html>", "text/html")
    image = bench.slack.file(
        ANNA, "a.png", b"<html>Sign in</html>", "text/html", mimetype="image/png"
    )
    items = await ended(bench, await ask(bench, page, image))
    assert [item.reason for item in items] == [None, NO_PAGE]


async def test_the_token_is_not_sent_after_a_redirect(bench: SlackBotHarness) -> None:
    image = bench.slack.file(ANNA, "a.png", b"x")
    bench.slack.world.files[image["id"]]["about"] = {
        "url_private_download": f"{bench.slack.world.base}/files-pri/T0OTHER-F1/a.png"
    }
    (item,) = await ended(bench, await ask(bench, image))
    assert item.reason == NO_PAGE
    assert [call.outcome for call in bench.slack.world.calls if call.method == "download"] == [
        "redirect"
    ]


@cases(
    ("url", "allowed"),
    [
        ("https://files.slack.com/files-pri/T1-F1/a.png", True),
        ("https://slack.com/x", True),
        ("https://files.slack-gov.com/x", True),
        ("http://files.slack.com/x", False),
        ("https://files.slack.com:8443/x", False),
        ("https://user@files.slack.com/x", False),
        ("https://slack.com.evil.test/x", False),
        ("https://evilslack.com/x", False),
        ("https://[files.slack.com/x", False),
        ("", False),
    ],
)
def test_only_slack_gets_the_token(url: str, allowed: bool) -> None:
    assert is_of_slack(url, SLACK_API) is allowed


async def test_without_the_scope_the_job_knows_that_it_had_files(bench: SlackBotHarness) -> None:
    bench.slack.world.scopes.remove("files:read")
    await full(bench)
    (item,) = await ended(bench, await ask(bench, bench.slack.file(ANNA, "a.txt", b"x")))
    assert (item.status, item.reason) == ("refused", NO_SCOPE)


async def test_the_messages_and_files_of_a_thread_reach_a_request_in_it(
    bench: SlackBotHarness,
) -> None:
    await full(bench)
    log = bench.slack.file(BEN, "trace.log", b"boom")
    root = await bench.slack.say(
        BEN, bench.general, "the shop is &lt;down&gt;", more={"files": [log]}
    )
    await bench.slack.say(ANNA, bench.general, "since noon", root.ts)
    own = bench.slack.file(bench.slack.bot_user, "changes.patch", b"+1")
    await bench.slack.say(
        bench.slack.bot_user, bench.general, "D-7: changes.patch", root.ts, {"files": [own]}
    )
    await bench.slack.mention(ANNA, bench.general, "fix it", root.ts)
    await bench.slack.say(BEN, bench.general, "a later reply", root.ts)
    (job,) = await bench.rt.read_model.jobs()
    thread, file = await ended(bench, job.number)
    assert (thread.name, file.name) == ("slack-thread.md", "trace.log")
    text = (await bench.rt.attachments.content(thread) or b"").decode()
    assert text.startswith("# Messages of the Slack thread before the request\n\n## UBEN, 20")
    assert "the shop is <down>\n(files: trace.log)\n\n## UANNA" in text
    assert text.endswith("D-7: changes.patch\n(files: changes.patch)"), "its files are not sent"
    assert await bench.rt.attachments.content(file) == b"boom"


async def test_a_reply_with_a_file_brings_it_to_the_running_agent(bench: SlackBotHarness) -> None:
    number, root = await running(bench)
    log = bench.slack.file(BEN, "trace.log", b"boom")
    await bench.slack.say(BEN, bench.general, "", root, {"files": [log]}, copies=2)
    (message,) = await bench.rt.messages.of_job(number)
    assert message.text == "See the attached files: trace.log"
    (item,) = await ended(bench, number)
    assert (item.name, item.status, item.message) == ("trace.log", "stored", 1)
