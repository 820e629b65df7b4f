"""The webhook: signatures, invalid bodies, and repair of the registration."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftsman.errors import DatabaseUnreachable
from draftsman_bots.trello import action_router, actions
from draftsman_bots.trello.actions import KINDS, Action, ActionKind
from draftsman_bots.trello.records.board import LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.transport import http_app as signature
from draftsman_testing.trello import FakeTrello, Fault
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.support.odd_json import oddities

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
    | st.sampled_from(["a" * 24, "0" * 24, "2026-01-01T00:00:00.000Z", "", "9999-12-31T23:59:59"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["id", "type", "data", "card", "board", "label", "action", "text", "memberCreator",
             "date", "old", "closed", "listAfter", "idMemberCreator", "fullName", "idLabels"]
        ) | st.text(max_size=5),
        inner,
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip
ACTION = st.fixed_dictionaries(
    {"id": st.just("a" * 24), "type": st.sampled_from([*KINDS, "other"])},
    optional={
        "date": JSON,
        "memberCreator": JSON,
        "idMemberCreator": JSON,
        "data": st.fixed_dictionaries(
            {},
            optional={
                name: st.fixed_dictionaries({}, optional={"id": st.just("b" * 24) | JSON}) | JSON
                for name in ("card", "board", "label", "action", "old", "text")
            },
        ),
    },
)


@given(JSON | ACTION)
def test_any_action_is_parsed_or_ignored(fields: Any) -> None:
    action = actions.parse_action(fields)
    actions.card_label_ids(fields)
    if action is not None:
        assert isinstance(action, Action)
        if action.kind in (ActionKind.LABEL_ADDED, ActionKind.LABEL_REMOVED):
            assert action.card
            assert action.label
        if action.kind.startswith("comment"):
            assert action.card
            assert action.comment
            assert action.member


async def refused(bench: TrelloBotHarness, few: int | None) -> list[str]:
    """Return the actions of a board with an odd field that are not processed or ignored."""
    trello = bench.trello
    card = bench.card()
    trello.check_item(trello.add_checklist(card, "Steps", ["one"]), "one")
    trello.comment(card, bench.mallory, "approve")
    trello.attach(card, "a.txt")
    trello.move(card, bench.ice)
    documents = {str(one["type"]): {"action": one} for one in trello.all_actions}
    callback = "https://example.org/trello"
    bench.configure(callback_url=callback)
    app = signature.application(bench.context, trello.secret)
    problems = []
    async with AsyncClient(transport=ASGITransport(app), base_url="http://bot") as client:
        for name, document in oddities(documents, few):
            body = json.dumps(document).encode()
            headers = {signature.HEADER: signature.sign(trello.secret, callback, body)}
            reply = await client.post("/trello", content=body, headers=headers)
            if reply.status_code != 200 or "error" in reply.text:
                problems.append(f"{reply.status_code} {reply.text} {name}")
    return problems


async def test_any_value_in_any_field_of_an_action_is_no_failure(bench: TrelloBotHarness) -> None:
    assert await refused(bench, few=1) == []


@given(st.binary(max_size=200))
def test_any_body_is_parsed_or_ignored(raw: bytes) -> None:
    actions.parse_action(actions.parse_body(raw))


@given(st.binary(max_size=100), st.text(max_size=60))
def test_signature_covers_exactly_the_signed_bytes(body: bytes, given_: str) -> None:
    good = signature.sign("secret", "https://x/t", body)
    assert signature.check("secret", "https://x/t", body, good)
    assert not signature.check("secret", "https://x/t/", body, good)
    assert not signature.check("secret", "https://x/t", body + b" ", good)
    assert not signature.check("other", "https://x/t", body, good)
    assert signature.check("secret", "https://x/t", body, given_) == (given_ == good)


UNKNOWN_BODIES = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"action": null}', b'{"action": {"id": null}}',
     b'{"action": {"id": "' + b"a" * 24 + b'", "type": "voteOnCard", "data": null}}',
     b"[" * 100_000]  # fmt: skip


async def test_signed_but_unknown_webhook_is_acknowledged(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    url = await bench.serve_webhook()
    for body in UNKNOWN_BODIES:
        headers = trello.webhook_delivery.headers(body, url)
        assert (await trello.webhook_delivery.post(url, body, headers))[0] == 200


async def test_webhook_signed_for_another_url_is_refused(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    url = await bench.serve_webhook()
    body = b'{"action": {}}'
    good = trello.webhook_delivery.headers(body, url)
    wrong = [
        trello.webhook_delivery.headers(body, f"{url}/"),
        trello.webhook_delivery.headers(body + b" ", url),
        good | {"X-Trello-Webhook": "AAAA"},
        good | {"X-Trello-Webhook": "é" * 9},
        good | {"X-Trello-Webhook": ""},
        {"Content-Type": "application/json"},
    ]
    for headers in wrong:
        assert (await trello.webhook_delivery.post(url, body, headers))[0] == 401
    changed = f"{url}/"
    headers = trello.webhook_delivery.headers(body, changed)
    assert (await trello.webhook_delivery.post(changed, body, headers))[0] == 401, "a proxy's slash"
    assert (await trello.webhook_delivery.post(changed, body, good))[0] == 200, (
        "the path is of no matter"
    )
    with pytest.warns(ResourceWarning):  # aiohttp's word on large bodies
        assert (await trello.webhook_delivery.post(url, b"x" * 1_100_000, good))[0] == 413


async def test_webhook_path_answers_head_and_post_only(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    url = await bench.serve_webhook()
    for method, status in (("HEAD", 200), ("GET", 405), ("OPTIONS", 405), ("PUT", 405)):
        assert (await trello.webhook_delivery.request(method, url)).status == status
    health = url.replace("trello", "healthz")
    assert (await trello.webhook_delivery.request("GET", health)).status == 200


async def test_inactive_or_missing_webhook_is_recreated(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    [webhook] = trello.webhooks
    [config] = await boards_of(bench.rt).all()
    assert config.webhook_id == webhook["id"]
    await bench.poller.check(config)
    assert [registered["id"] for registered in trello.webhooks] == [webhook["id"]]
    trello.world.webhooks[webhook["id"]].failures = 3
    await bench.poller.check(config)
    assert "failed 3 times in a row" in str(bench.context.health.notes)
    trello.deactivate(webhook["id"])
    await bench.poller.check(config)
    assert (trello.webhooks[0]["active"], bench.context.health.notes) == (True, {})
    del trello.world.webhooks[webhook["id"]]
    await bench.poller.check(config)
    [again] = trello.webhooks
    assert again["id"] != webhook["id"]
    [config] = await boards_of(bench.rt).all()
    assert config.webhook_id == again["id"]
    bench.configure(callback_url=again["callbackURL"] + "/2")
    await bench.poller.check(config)
    assert [registered["callbackURL"] for registered in trello.webhooks] == [
        again["callbackURL"] + "/2"
    ]
    [config] = await boards_of(bench.rt).all()
    bench.configure(callback_url="http://127.0.0.1:9/nobody")
    await bench.poller.check(config)
    assert "cannot create a webhook" in str(bench.context.health.notes)
    assert "polling is used instead" in str(bench.context.health.notes)


async def test_webhook_with_missing_fields_is_ignored(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    url = await bench.serve_webhook()
    base = {"id": "a" * 24, "date": None, "memberCreator": None, "data": {"board": None}}
    board = {"id": bench.board}
    card = {"id": bench.card()}
    removed: list[dict[str, Any]] = [
        {"type": name, "data": data}
        for name in KINDS
        for data in ({}, {"board": board}, {"board": board, "card": card}, {"card": None})
    ]
    for fields in removed:
        body = json.dumps({"model": None, "action": base | fields}).encode()
        status, text = await trello.webhook_delivery.post(
            url, body, trello.webhook_delivery.headers(body, url)
        )
        assert (status, text) != (200, "error\n"), fields
        assert status == 200
    assert await bench.jobs() == []


async def test_webhook_that_cannot_be_handled_is_retried(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    await bench.deliver_webhooks()
    trello.webhook_delivery.sent.clear()
    trello.add_label(card, bench.label)
    trello.faults.next("GET", "/cards/{id}", Fault.HTML_503, times=10)
    assert {ack.status for ack in await bench.deliver_webhooks()} == {503}
    trello.faults.clear()
    me = bench.context.me.id
    bench.context.me.id = ""
    assert {ack.status for ack in await bench.deliver_webhooks(replay=True)} == {503}
    bench.context.me.id = me

    async def away(*_: object) -> None:
        raise DatabaseUnreachable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(boards_of(bench.rt)), "of", away)
        assert {ack.status for ack in await bench.deliver_webhooks(replay=True)} == {503}
    assert {ack.status for ack in await bench.deliver_webhooks(replay=True)} == {200}
    assert await bench.keys() == [bench.key(card)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=ACTION)
async def test_no_action_breaks_the_webhook(bench: TrelloBotHarness, fields: Any) -> None:
    """Every board is watched that a fuzzed action can name."""
    board = "b" * 24
    action = actions.parse_action(fields)
    await bench.watch(board_id=board, labels={board: LabelRule()})
    if action is not None:
        await action_router.on_webhook(bench.context, action, [])
