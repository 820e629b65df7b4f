"""Webhooks are made as Trello makes them, signed, and delivered in every way that happens."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json

import pytest
from trello import TrelloClient

from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.entities import Json
from draftsman_testing.waits import until
from tests.bots.trello.http_adapters import (
    RequestsAdapter,
    ask,
    refusal,
    run_in_thread,
)
from tests.bots.trello.webhook_receiver import WebhookReceiver


async def test_py_trello_creates_lists_and_deletes_a_webhook(
    trello: FakeTrello, board: str, receiver: WebhookReceiver
) -> None:
    client = TrelloClient(trello.key, trello.token, http_service=RequestsAdapter(trello.api_url))
    webhook_ids = await run_in_thread(client.create_hook, receiver.url, board, "ours")
    assert (receiver.heads, receiver.received) == (1, [])
    (seen,) = await run_in_thread(client.list_hooks)
    assert (seen.id, seen.id_model, seen.callback_url, seen.active) == (
        webhook_ids.id,
        board,
        receiver.url,
        True,
    )
    (kept,) = trello.webhooks
    assert (kept["description"], kept["consecutiveFailures"]) == ("ours", 0)
    assert kept["firstConsecutiveFailDate"] is None
    await run_in_thread(seen.delete)
    assert trello.webhooks == []


@pytest.mark.parametrize("status", [404, 405, 500, 204, 302])
async def test_callback_must_answer_head_with_200(
    trello: FakeTrello, client: TrelloClient, board: str, receiver: WebhookReceiver, status: int
) -> None:
    receiver.head = status
    with pytest.raises(Exception, match=f"did not return 200 status code, got {status}"):
        await run_in_thread(client.create_hook, receiver.url, board)
    with pytest.raises(Exception, match="got no answer"):
        await run_in_thread(client.create_hook, "http://127.0.0.1:9/hook", board)
    assert trello.webhooks == []


async def test_a_second_webhook_of_the_same_kind_is_refused(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, receiver: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, receiver.url, board)
    with pytest.raises(Exception, match="already exists"):
        await run_in_thread(client.create_hook, receiver.url, board)
    await run_in_thread(client.create_hook, receiver.url, card)
    assert len(trello.webhooks) == 2


async def test_model_of_a_webhook_must_exist(
    trello: FakeTrello, client: TrelloClient, board: str, receiver: WebhookReceiver
) -> None:
    others = trello.board("Others'", bot=False)
    for model, status in (("x", 400), ("0" * 24, 404), (others, 401)):
        body = {"idModel": model, "callbackURL": receiver.url}
        assert (await refusal(client.fetch_json, "/webhooks", "POST", post_args=body))[0] == status
    for name, value in (("callbackURL", "nowhere"), ("description", "x" * 16385)):
        body = {"idModel": board, "callbackURL": receiver.url, name: value}
        updated = await refusal(client.fetch_json, "/webhooks", "POST", post_args=body)
        assert updated == (400, f"invalid value for {name}")
    other = await refusal(client.fetch_json, "/tokens/another/webhooks")
    assert other == (401, "invalid token")
    assert receiver.heads == 0


async def test_webhook_is_signed_and_has_the_current_model(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    card: str,
    anna: str,
    receiver: WebhookReceiver,
) -> None:
    await run_in_thread(client.create_hook, receiver.url, board)
    trello.comment(card, anna, "für Ünal — 日本")
    (ack,) = await trello.deliver()
    (received,) = receiver.received
    assert (ack.acked, ack.status, ack.attempts, received.signed) == (True, 200, 1, True)
    assert received.headers["User-Agent"] == "Trello"
    assert received.headers["Content-Type"] == "application/json"
    assert "日本".encode() in received.raw
    assert (received.body["model"]["id"], received.kind) == (board, "commentCard")
    assert received.action["memberCreator"]["id"] == anna
    listed = (await ask(trello, "GET", f"/actions/{received.action['id']}")).json()
    assert (listed["date"], listed["data"]) == (received.action["date"], received.action["data"])
    assert await trello.deliver() == []


async def test_signature_covers_secret_body_and_url(
    trello: FakeTrello,
) -> None:
    body = b'{"a": 1}'
    url = "https://example.com/hook"
    header = trello.webhook_delivery.headers(body, url)["X-Trello-Webhook"]
    digest = hmac.new(trello.secret.encode(), body + url.encode(), hashlib.sha1).digest()
    assert header == base64.b64encode(digest).decode()
    for other in ((body + b" ", url), (body, url + "/")):
        assert trello.webhook_delivery.headers(*other)["X-Trello-Webhook"] != header
    raw = json.dumps(json.loads(b'{"a":1}')).encode()
    assert raw == body


async def test_only_watched_models_are_delivered(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    todo: str,
    card: str,
    receiver: WebhookReceiver,
) -> None:
    other = trello.card(board, todo, "Other")
    await run_in_thread(client.create_hook, receiver.url, card)
    doing = trello.list(board, "Doing")
    trello.move(other, doing)
    trello.move(card, doing)
    trello.archive(card)
    await trello.deliver()
    assert receiver.kinds == ["updateCard", "updateCard"]
    assert [webhook.body["model"]["closed"] for webhook in receiver.received] == [False, True]


async def test_webhooks_have_actions_that_no_list_has(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    card: str,
    anna: str,
    receiver: WebhookReceiver,
) -> None:
    await run_in_thread(client.create_hook, receiver.url, board)
    fix = trello.label(board, "fix", None)
    trello.add_label(card, fix)
    comment = trello.comment(card, anna, "one")
    trello.edit_comment(comment, "two")
    trello.delete_comment(comment)
    trello.delete_card(card)
    await trello.deliver()
    kinds = "createLabel addLabelToCard commentCard updateComment deleteComment deleteCard"
    assert receiver.kinds == kinds.split()
    edited, deleted, gone = (webhook.action["data"] for webhook in receiver.received[3:])
    assert (edited["action"], edited["old"]) == ({"id": comment, "text": "two"}, {"text": "one"})
    assert deleted["action"] == {"id": comment}
    assert "name" not in gone["card"]
    assert receiver.received[2].action["data"]["text"] == "one"


async def three(
    trello: FakeTrello, client: TrelloClient, receiver: WebhookReceiver, card: str
) -> list[str]:
    """Create a webhook and three comments; return their ids."""
    await run_in_thread(client.create_hook, receiver.url, trello.card_now(card)["idBoard"])
    return [trello.comment(card, trello.someone, str(number)) for number in range(3)]


def ids(receiver: WebhookReceiver) -> list[str]:
    """Return the received comments."""
    return [webhook.action["id"] for webhook in receiver.received]


async def test_webhooks_can_be_duplicated_shuffled_lost_and_replayed(
    trello: FakeTrello, client: TrelloClient, card: str, receiver: WebhookReceiver
) -> None:
    webhook_ids = await three(trello, client, receiver, card)

    def first(action: Json) -> bool:
        return bool(action["id"] == webhook_ids[0])

    await trello.deliver(copies=2, shuffle=3)
    assert sorted(ids(receiver)) == sorted(webhook_ids * 2)
    received = list(receiver.received)
    receiver.received.clear()
    await trello.deliver(replay=True, shuffle=3)
    assert (sorted(ids(receiver)), ids(receiver) == webhook_ids) == (webhook_ids, False)
    receiver.received.clear()
    await trello.deliver(replay=True, drop=first)
    assert ids(receiver) == webhook_ids[1:]
    assert {webhook.raw for webhook in receiver.received} <= {webhook.raw for webhook in received}
    receiver.received.clear()
    late = trello.comment(card, trello.someone, "late")
    await trello.deliver(drop=lambda action: True)
    assert ids(receiver) == []
    await trello.deliver(replay=True)
    assert ids(receiver) == [*webhook_ids, late]


async def test_webhooks_can_arrive_concurrently(
    trello: FakeTrello, client: TrelloClient, card: str, receiver: WebhookReceiver
) -> None:
    webhook_ids = await three(trello, client, receiver, card)
    trello.webhook_delivery.retries = 0
    receiver.silent = asyncio.Event()
    receiver.statuses = [500] * 3
    going = asyncio.create_task(trello.deliver(together=True))

    async def all_came() -> bool:
        return len(receiver.received) == 3

    await until(all_came, "three deliveries at once")
    receiver.silent.set()
    assert [webhook.status for webhook in await going] == [500] * 3
    assert sorted(ids(receiver)) == sorted(webhook_ids)


async def test_rejected_webhook_is_sent_again_and_counted(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, receiver: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, receiver.url, board)
    receiver.statuses = [500, 401, 302]
    trello.comment(card, trello.someone, "hello")
    (ack,) = await trello.deliver()
    assert (ack.status, ack.attempts, len(receiver.received)) == (200, 4, 4)
    assert trello.webhooks[0]["consecutiveFailures"] == 0
    receiver.statuses = [500] * 4
    trello.comment(card, trello.someone, "hello")
    assert [webhook.acked for webhook in await trello.deliver()] == [False]
    assert trello.webhooks[0]["consecutiveFailures"] == 4
    assert trello.webhooks[0]["firstConsecutiveFailDate"]
    assert trello.webhooks[0]["active"]


async def test_callback_without_a_response_times_out(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, receiver: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, receiver.url, board)
    trello.webhook_delivery.patience = 0.05
    trello.webhook_delivery.retries = 0
    receiver.silent = asyncio.Event()
    trello.comment(card, trello.someone, "hello")
    (ack,) = await trello.deliver()
    receiver.silent.set()
    assert (ack.status, ack.acked) == (None, False)
    assert trello.webhooks[0]["consecutiveFailures"] == 1


async def test_status_410_deletes_a_webhook(
    trello: FakeTrello, client: TrelloClient, card: str, receiver: WebhookReceiver
) -> None:
    await three(trello, client, receiver, card)
    receiver.statuses = [410]
    acks = await trello.deliver()
    assert (acks[0].status, acks[0].attempts) == (410, 1)
    assert trello.webhooks == []


async def test_webhook_is_disabled_after_repeated_failures(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, receiver: WebhookReceiver
) -> None:
    webhook_ids = await run_in_thread(client.create_hook, receiver.url, board)
    trello.webhook_delivery.disable_after = 2
    trello.webhook_delivery.retries = 0
    receiver.statuses = [500] * 2
    for _ in range(2):
        trello.comment(card, trello.someone, "hello")
        await trello.deliver()
    assert (trello.webhooks[0]["active"], trello.webhooks[0]["consecutiveFailures"]) == (False, 2)
    trello.comment(card, trello.someone, "unheard")
    assert await trello.deliver() == []
    path = f"/webhooks/{webhook_ids.id}"
    body = {"active": "true"}
    receiver.head = 500
    assert (await refusal(client.fetch_json, path, "PUT", post_args=body))[0] == 400
    receiver.head = 200
    updated = await run_in_thread(client.fetch_json, path, "PUT", post_args=body)
    assert (updated["active"], updated["consecutiveFailures"]) == (True, 0)
    trello.comment(card, trello.someone, "heard")
    assert len(await trello.deliver()) == 1
    trello.deactivate(webhook_ids.id)
    assert not (await run_in_thread(client.fetch_json, path))["active"]


async def test_a_revoked_token_loses_its_webhooks(
    trello: FakeTrello, client: TrelloClient, card: str, receiver: WebhookReceiver
) -> None:
    await three(trello, client, receiver, card)
    trello.revoke()
    assert trello.webhooks == []
    trello.comment(card, trello.someone, "unheard")
    assert len(await trello.deliver()) == 3
