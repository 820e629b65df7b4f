"""Every HTTP request gets a response other than 500, signed or not."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slack_sdk.web.async_client import AsyncWebClient

from draftsman.database.database import Database
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import settings_model
from draftsman_bots.slack import listeners
from draftsman_bots.slack.context import BotContext
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport import http_app as signature
from draftsman_bots.slack.transport.acknowledgments import INTERNAL_ERROR
from draftsman_bots.slack.transport.dispatcher import SlackDispatcher, build
from draftsman_bots.slack.transport.http_app import EVENTS_PATH, application
from tests.bots.slack.transport.recorded import PAYLOADS
from tests.support.odd_json import Json, oddities

SECRET = "a-signing-secret"
FINE = {200, 400, 401, 408, 413}
Send = Callable[[bytes, dict[str, str]], httpx.Response]

TEXT = st.text(max_size=12) | st.sampled_from(["", "\x00", "\ud800", "U-ANNA", "C1", "message"])
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
JSON = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=4)
)
KEYS = tuple(
    word
    for line in (
        "event user team view actions channel container state message authorizations enterprise",
        "team_id user_id channel_id event_id trigger_id response_url callback_id text command",
        "is_enterprise_install view_id api_app_id value action_id block_id",
    )
    for word in line.split()
)
EVENT_KEYS = ("user", "text", "channel", "ts", "thread_ts", "subtype", "bot_id", "message", "files")
TYPES = (
    *("event_callback", "block_actions", "view_submission", "view_closed", "shortcut"),
    *("message_action", "block_suggestion", "interactive_message", "app_rate_limited"),
    *("url_verification", "function_executed"),
)
EVENTS = "message app_mention app_home_opened tokens_revoked app_uninstalled member_joined_channel"


def _some(
    keys: Sequence[str], **fixed: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    more = [key for key in keys if key not in fixed]
    return st.fixed_dictionaries(fixed, optional=dict.fromkeys(more, JSON))


INNER = _some(EVENT_KEYS, type=st.sampled_from(EVENTS.split()))
NAMED = st.fixed_dictionaries({"id": TEXT}, optional=dict.fromkeys(("team_id", "name"), JSON))
ACTION = _some(["value", "type", "selected_option", "action_ts"], action_id=TEXT, block_id=TEXT)
VIEW = _some(["state", "blocks", "private_metadata", "callback_id"], id=TEXT, type=TEXT)
PAYLOAD = (
    _some(KEYS, type=st.sampled_from(TYPES))
    | _some(KEYS, type=st.just("event_callback"), event=INNER)
    | _some(KEYS, type=st.just("block_actions"), user=NAMED, actions=st.lists(ACTION, min_size=1))
    | _some(KEYS, type=st.sampled_from(["view_submission", "view_closed"]), user=NAMED, view=VIEW)
    | _some(KEYS, type=st.just("message_action"), user=NAMED, callback_id=TEXT)
    | st.dictionaries(TEXT, JSON, max_size=5)
)


@pytest.fixture(scope="module")
def send(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Send]:
    """Provide a function that sends a request to the bot, with its own loop and database."""
    name = server.create()
    config = settings_model().model_validate(
        {
            "database_url": server.url(name),
            "data_dir": tmp_path_factory.mktemp("data"),
            "people": {"anna": {"slack": "U-ANNA", "roles": ["invoker", "responder", "approver"]}},
            "slack": {
                "mode": "http", "bot_token": {"env": "B"}, "signing_secret": {"env": "S"},
                "api_url": "http://127.0.0.1:9/api/",
            },
        }
    )  # fmt: skip
    runner = asyncio.Runner()
    wait = runner.run
    db = Database(server.url(name), config.database, enums=ENUMS)
    wait(db.open())
    client = wait(_client(wire(config, db, False)))

    def post(body: bytes, headers: dict[str, str]) -> httpx.Response:
        return wait(client.post(EVENTS_PATH, content=body, headers=headers))

    yield post
    wait(client.aclose())
    wait(db.close())
    runner.close()
    server.leave(name)


async def _client(rt: Runtime) -> httpx.AsyncClient:
    """Return a client of the bot's ASGI application, with its real listeners and no Slack."""
    slack = SlackSettings.of(rt.settings)
    assert slack is not None
    web = AsyncWebClient("xoxb-fuzz", base_url=slack.api_url, timeout=1, retry_handlers=[])
    ctx = BotContext(rt, slack, web)
    health = BotHealth()
    app = build(web, Identity("T1"), lambda app: listeners.register(app, ctx))
    bot = SlackDispatcher(app, listeners.events(ctx), health)
    transport = httpx.ASGITransport(application(bot, SECRET, health))
    return httpx.AsyncClient(transport=transport, base_url="http://bot", timeout=10)


def signed(body: bytes, content_type: str) -> dict[str, str]:
    stamp = str(int(time.time()))
    return {
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": signature.sign(SECRET, stamp, body),
        "content-type": content_type,
    }


FEW = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@FEW
@given(payload=PAYLOAD, form=st.booleans(), retry=st.none() | TEXT)
def test_signed_payload_of_any_shape_never_gets_500(
    send: Send, payload: Any, form: bool, retry: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    text = json.dumps(payload)
    body = str(httpx.QueryParams({"payload": text})).encode() if form else text.encode()
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    headers = signed(body, kind)
    if retry is not None and retry.isascii() and retry.isprintable():
        headers["x-slack-retry-num"] = retry
    with caplog.at_level(logging.WARNING):
        reply = send(body, headers)
    # 503: a listener wanted Slack's Web API, which is not there
    assert reply.status_code in FINE | {503}, (payload, caplog.text)


@FEW
@given(
    body=st.binary(max_size=200) | st.sampled_from([b"{", b"payload=", b"payload=null", b"[[[["]),
    kind=st.sampled_from(["application/json", "application/x-www-form-urlencoded", "", "a/b"]),
)
def test_signed_bytes_are_no_500(send: Send, body: bytes, kind: str) -> None:
    assert send(body, signed(body, kind)).status_code in FINE


@FEW
@given(fields=st.dictionaries(st.sampled_from([*KEYS, "ssl_check"]), TEXT, max_size=8))
def test_signed_form_never_gets_500(send: Send, fields: dict[str, str]) -> None:
    clean = {key: value.encode("utf-8", "replace") for key, value in fields.items()}
    from urllib.parse import urlencode

    body = urlencode({"command": "/draftsman", **clean}).encode()
    assert send(body, signed(body, "application/x-www-form-urlencoded")).status_code in FINE


def refused(send: Send, changes: Iterator[tuple[str, Json]]) -> list[str]:
    """Return the changed payloads whose response is neither a 200 nor a refusal.

    503: a listener wanted Slack's Web API, which is not there.
    """
    problems = []
    for name, payload in changes:
        raw = json.dumps(payload).encode()
        reply = send(raw, signed(raw, "application/json"))
        if reply.status_code not in FINE | {503} or INTERNAL_ERROR in reply.text:
            problems.append(f"{reply.status_code} {name}")
    return problems


def test_any_value_in_any_field_of_a_payload_is_no_500(send: Send) -> None:
    assert refused(send, oddities(PAYLOADS, few=2)) == []


def test_each_payload_is_understood(send: Send) -> None:
    for name, payload in PAYLOADS.items():
        raw = json.dumps(payload).encode()
        assert send(raw, signed(raw, "application/json")).status_code in {200, 503}, name


HEADER = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"))


@FEW
@given(stamp=HEADER, given_=HEADER, body=st.binary(max_size=50))
def test_unsigned_request_gets_401(send: Send, stamp: str, given_: str, body: bytes) -> None:
    names = ("x-slack-request-timestamp", "x-slack-signature")
    headers: Any = [
        (name.encode(), value.encode("latin-1"))
        for name, value in zip(names, (stamp, given_), strict=True)
    ]
    assert send(body, headers).status_code == 401
