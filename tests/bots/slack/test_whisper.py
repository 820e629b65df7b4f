"""A private word finds its way, whichever of them are closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_bots.aside import Aside
from draftsman_bots.slack.listeners.desk import Desk
from draftsman_bots.slack.listeners.whisper import Place, Said, whisper
from tests.support.slack import FakeSlack, error
from tests.support.slack.world import HOOK_LIFE, HOOK_USES, Hook

WORD = Said("already answered by @ben")


@dataclass
class Whisperer:
    """What of a desk a private word needs."""

    client: AsyncWebClient
    aside: Aside = field(default_factory=Aside)


async def said(desk: Whisperer, place: Place) -> None:
    whisper(cast("Desk", desk), place, WORD)
    await desk.aside.idle()


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [one["text"] for one in found]


@pytest.mark.parametrize("gone", ["used six times", "half an hour old"])
async def test_case_46_an_address_that_is_used_up_is_not_needed(
    slack: FakeSlack, client: AsyncWebClient, anna: str, general: str, gone: str
) -> None:
    hook = Hook(anna, general, slack.world.now())
    place = Place(anna, general, respond=slack.world.hook(hook))
    desk = Whisperer(client)
    if gone == "used six times":
        hook.uses = HOOK_USES
    else:
        slack.later(HOOK_LIFE + 1)
    await said(desk, place)
    assert texts(slack.ephemerals(general, anna)) == [WORD.text]
    slack.faults.next("chat.postEphemeral", error("channel_not_found"))
    await said(desk, place)
    assert texts(slack.messages(slack.direct(anna))) == [WORD.text], "by hand, when all is closed"


async def test_case_46_the_address_is_used_where_the_bot_may_not_post(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    room = slack.channel("without-the-bot", [anna], private=True, bot=False)
    hook = Hook(anna, room, slack.world.now())
    await said(Whisperer(client), Place(anna, room, respond=slack.world.hook(hook)))
    assert texts(slack.ephemerals(room, anna)) == [WORD.text]
    assert hook.uses == 1
    assert slack.messages(slack.direct(anna)) == []
