"""The live checks of Slack, on the fake."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, Final

import pytest

from draftsman.settings import settings_model
from draftsman_bots.slack import scopes
from draftsman_bots.slack.live.calls import SESSION, START, STATUS
from draftsman_bots.slack.live_checks import LIVE_CHECKS
from draftsman_bots.slack.live_checks.conversation import SUGGEST
from draftsman_testing.channel.live_contract import LiveContract, Onlooker
from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.faults import error

REACTION: Final = "+1::skin-tone-5"


class SlackSide:
    """A channel with a person of the workspace, and one of another of the organization."""

    service = "slack"

    def __init__(self, fake: FakeSlack) -> None:
        self.fake = fake
        fake.world.enterprise = "E000000001"
        fake.world.scopes = set(scopes.FULL)
        self.anna = fake.user("anna", enterprise=fake.world.enterprise)
        self.ben = fake.user("ben", team="T000000002", enterprise=fake.world.enterprise)
        self.scratch = fake.channel("live", [self.anna, self.ben])
        shared = fake.file(self.ben, "plan.txt", b"plan")
        self.shared = shared["id"]
        limited = {"id": self.shared, "file_access": "check_file_info"}
        message = {"type": "message", "user": self.ben, "text": "", "files": [limited]}
        ts = fake.world.ts()
        fake.world.channels[self.scratch].messages[ts] = message | {"ts": ts}
        self._before = {ts, self.shared}
        self.secret = fake.bot_token
        self.person = Onlooker(fake.later)
        self.person.acts = self._react
        self.reaction = REACTION
        table = {
            "bot_token": {"env": "BOT"},
            "app_token": {"env": "APP"},
            "api_url": fake.api_url,
        }
        self.settings = settings_model().model_validate({"slack": table})

    @property
    def table(self) -> object:
        return getattr(self.settings, "slack", None)

    def written(self) -> Collection[object]:
        channels = self.fake.world.channels.values()
        messages = [message for channel in channels for message in channel.messages]
        files = self.fake.world.files
        return {*messages, *files} - self._before

    def echo(self) -> None:
        self.fake.faults.next(STATUS, error(f"no_status_for_{self.secret}"))

    def keep(self) -> None:
        self.fake.faults.next("files.delete", error("cant_delete_file"))

    def refuse(self, method: str, code: str, when: Callable[[Mapping[str, Any]], bool]) -> None:
        """Refuse the calls with such arguments."""

        def refuse(args: Mapping[str, Any], work: Callable[[], Any]) -> Any:
            if when(args):
                raise ApiError(code)
            return work()

        self.fake.faults.change(method, refuse)

    def root(self, args: Mapping[str, Any]) -> str:
        """Return the text of the first message of a thread."""
        return str(self.fake.world.channels[args["channel"]].messages[args["thread_ts"]]["text"])

    def _react(self, question: str) -> None:
        if "react with" in question and (ts := re.search(r"message_ts=([\d.]+)", question)):
            message = self.fake.world.channels[self.scratch].messages[ts[1]]
            message["reactions"] = [{"name": self.reaction, "users": [self.anna], "count": 1}]


def _with_metadata(args: Mapping[str, Any], work: Callable[[], Any]) -> Any:
    reply = work()
    for message in reply["messages"]:
        message["metadata"] = {"event_type": "stream"}
    return reply


def _no(text: str) -> Callable[[SlackSide], object]:
    return lambda side: side.person.unseen.add(text)


def _fault(method: str, code: str) -> Callable[[SlackSide], object]:
    return lambda side: side.fake.faults.next(method, error(code))


BREAKS: Final[Mapping[str, Callable[[SlackSide], object]]] = {
    "status-in-thread": _fault(STATUS, "missing_scope"),
    "session-in-thread": _fault(SESSION, "feature_not_enabled"),
    "session-stop": _no("stop button"),
    "status-removed": _no("gone from both"),
    "status-text": _no("end with END"),
    "file-download": _fault("download", "sign_in"),
    "file-with-id-only": lambda side: side.refuse(
        "files.info", "file_not_found", lambda args: args["file"] == side.shared
    ),
    "reaction-names": lambda side: setattr(side, "reaction", "thumbs_up_tone4"),
    "opened-tab": _no("tab Messages"),
    "suggested-prompts": _fault(SUGGEST, "invalid_arguments"),
    "stream-in-thread": lambda side: side.refuse(
        START,
        "channel_type_not_supported",
        lambda args: "stream-in-thread" in side.root(args),
    ),
    "stream-in-organization": lambda side: side.refuse(
        START, "user_not_found", lambda args: args.get("recipient_user_id") == side.ben
    ),
    "stream-in-direct-message": lambda side: side.refuse(
        START, "missing_recipient_user_id", lambda args: "recipient_user_id" not in args
    ),
    "stream-task-replaced": _no("SECOND"),
    "stream-size": lambda side: side.refuse(
        START, "msg_too_long", lambda args: len(args["chunks"]) > 30
    ),
    "stream-task-text": _no("does its step show"),
    "stream-in-replies": lambda side: side.fake.faults.change(
        "conversations.replies", _with_metadata
    ),
    "stream-lifetime": lambda side: setattr(
        side.person, "passes", lambda seconds: side.fake.later(2 * seconds)
    ),
    "closed-stream-replaced": _fault("chat.update", "cant_update_message"),
}


class TestLiveChecks(LiveContract):
    checks = LIVE_CHECKS
    breaks = BREAKS

    @pytest.fixture
    async def side(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlackSide]:
        async with FakeSlack() as fake:
            monkeypatch.setenv("BOT", fake.bot_token)
            monkeypatch.setenv("APP", fake.app_token)
            yield SlackSide(fake)
