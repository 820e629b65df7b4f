"""An ephemeral message is sent through whichever way works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_bots.process.background import BackgroundTasks
from draftsman_bots.slack.context import BotContext
from draftsman_bots.slack.ephemeral import Reply, send_ephemeral
from draftsman_bots.slack.payloads.payloads import ReplyTarget
from draftsman_testing.slack import FakeSlack, Fault, error
from draftsman_testing.slack.world import HOOK_LIFE, HOOK_USES, Hook

WORD = Reply("already answered by @ben")


@dataclass
class EphemeralContext:
    """The parts of a BotContext that an ephemeral message needs."""

    client: AsyncWebClient
    background: BackgroundTasks = field(default_factory=BackgroundTasks)


async def send(ctx: EphemeralContext, target: ReplyTarget) -> None:
    send_ephemeral(cast("BotContext", ctx), target, WORD)
    await ctx.background.idle()


def texts(result: list[dict[str, Any]]) -> list[str]:
    return [item["text"] for item in result]


@pytest.mark.parametrize("reason", ["used six times", "half an hour old"])
async def test_exhausted_response_url_falls_back_to_posting(
    slack: FakeSlack, client: AsyncWebClient, anna: str, general: str, reason: str
) -> None:
    hook = Hook(anna, general, slack.world.now())
    target = ReplyTarget(anna, general, response_url=slack.world.hook(hook))
    ctx = EphemeralContext(client)
    if reason == "used six times":
        hook.uses = HOOK_USES
    else:
        slack.later(HOOK_LIFE + 1)
    await send(ctx, target)
    assert texts(slack.ephemerals(general, anna)) == [WORD.text]
    slack.faults.next("chat.postEphemeral", error("channel_not_found"))
    await send(ctx, target)
    assert texts(slack.messages(slack.direct(anna))) == [WORD.text], "by hand, when all is closed"


async def test_response_url_is_used_outside_the_bots_channels(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    room = slack.channel("without-the-bot", [anna], private=True, bot=False)
    hook = Hook(anna, room, slack.world.now())
    await send(
        EphemeralContext(client), ReplyTarget(anna, room, response_url=slack.world.hook(hook))
    )
    assert texts(slack.ephemerals(room, anna)) == [WORD.text]
    assert hook.uses == 1
    assert slack.messages(slack.direct(anna)) == []


@pytest.mark.parametrize("fault", [Fault.DROP_BEFORE, Fault.SLOW(2), Fault.HTML_503])
async def test_failed_or_slow_reply_method_falls_back_to_the_next(
    slack: FakeSlack, anna: str, general: str, fault: Fault
) -> None:
    client = AsyncWebClient(slack.bot_token, slack.api_url, timeout=1, retry_handlers=[])
    hook = Hook(anna, general, slack.world.now())
    target = ReplyTarget(anna, general, response_url=slack.world.hook(hook))
    slack.faults.next("chat.postEphemeral", fault)
    await send(EphemeralContext(client), target)
    assert hook.uses == 1
    slack.faults.next("chat.postEphemeral", fault)
    slack.faults.next("response_url", fault)
    await send(EphemeralContext(client), target)
    assert texts(slack.messages(slack.direct(anna))) == [WORD.text]


async def test_undeliverable_reply_is_logged(
    slack: FakeSlack,
    client: AsyncWebClient,
    anna: str,
    general: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    slack.faults.next("*", Fault.DROP_BEFORE, times=3)
    target = ReplyTarget(
        anna, general, response_url=slack.world.hook(Hook(anna, general, slack.world.now()))
    )
    await send(EphemeralContext(client), target)
    assert "an ephemeral message was not sent: ServerDisconnectedError" in caplog.text
    assert slack.faults.left == 0
