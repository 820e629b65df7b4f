"""Webhooks are made as Trello makes them, signed, and delivered in every way that happens."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json

import pytest
from trello import TrelloClient

from tests.bots.trello.http_adapters import (
    HttpxAdapter,
    RequestsAdapter,
    ask,
    refusal,
    run_in_thread,
)
from tests.bots.trello.webhook_receiver import WebhookReceiver
from tests.support.trello import FakeTrello
from tests.support.trello.entities import Json
from tests.support.waits import until


@pytest.mark.parametrize("service", [RequestsAdapter, HttpxAdapter])
async def test_py_trello_makes_lists_and_deletes_a_webhook(
    trello: FakeTrello, board: str, ears: WebhookReceiver, service: type[RequestsAdapter]
) -> None:
    client = TrelloClient(trello.key, trello.token, http_service=service(trello.api_url))
    made = await run_in_thread(client.create_hook, ears.url, board, "ours")
    assert (ears.heads, ears.heard) == (1, [])
    (seen,) = await run_in_thread(client.list_hooks)
    assert (seen.id, seen.id_model, seen.callback_url, seen.active) == (
        made.id,
        board,
        ears.url,
        True,
    )
    (kept,) = trello.webhooks
    assert (kept["description"], kept["consecutiveFailures"]) == ("ours", 0)
    assert kept["firstConsecutiveFailDate"] is None
    await run_in_thread(seen.delete)
    assert trello.webhooks == []


@pytest.mark.parametrize("status", [404, 405, 500, 204, 302])
async def test_the_callback_has_to_answer_head_with_200(
    trello: FakeTrello, client: TrelloClient, board: str, ears: WebhookReceiver, status: int
) -> None:
    ears.head = status
    with pytest.raises(Exception, match=f"did not return 200 status code, got {status}"):
        await run_in_thread(client.create_hook, ears.url, board)
    with pytest.raises(Exception, match="got no answer"):
        await run_in_thread(client.create_hook, "http://127.0.0.1:9/hook", board)
    assert trello.webhooks == []


async def test_a_second_webhook_of_the_same_kind_is_refused(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, ears: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, ears.url, board)
    with pytest.raises(Exception, match="already exists"):
        await run_in_thread(client.create_hook, ears.url, board)
    await run_in_thread(client.create_hook, ears.url, card)
    assert len(trello.webhooks) == 2


async def test_what_a_webhook_watches_must_be_there(
    trello: FakeTrello, client: TrelloClient, board: str, ears: WebhookReceiver
) -> None:
    others = trello.board("Others'", bot=False)
    for model, status in (("x", 400), ("0" * 24, 404), (others, 401)):
        said = {"idModel": model, "callbackURL": ears.url}
        assert (await refusal(client.fetch_json, "/webhooks", "POST", post_args=said))[0] == status
    for name, value in (("callbackURL", "nowhere"), ("description", "x" * 16385)):
        said = {"idModel": board, "callbackURL": ears.url, name: value}
        found = await refusal(client.fetch_json, "/webhooks", "POST", post_args=said)
        assert found == (400, f"invalid value for {name}")
    other = await refusal(client.fetch_json, "/tokens/another/webhooks")
    assert other == (401, "invalid token")
    assert ears.heads == 0


async def test_a_delivery_is_signed_and_has_the_watched_thing_as_it_is_then(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    card: str,
    anna: str,
    ears: WebhookReceiver,
) -> None:
    await run_in_thread(client.create_hook, ears.url, board)
    trello.comment(card, anna, "für Ünal — 日本")
    (ack,) = await trello.deliver()
    (heard,) = ears.heard
    assert (ack.acked, ack.status, ack.attempts, heard.signed) == (True, 200, 1, True)
    assert heard.headers["User-Agent"] == "Trello"
    assert heard.headers["Content-Type"] == "application/json"
    assert "日本".encode() in heard.raw
    assert (heard.body["model"]["id"], heard.kind) == (board, "commentCard")
    assert heard.action["memberCreator"]["id"] == anna
    listed = (await ask(trello, "GET", f"/actions/{heard.action['id']}")).json()
    assert (listed["date"], listed["data"]) == (heard.action["date"], heard.action["data"])
    assert await trello.deliver() == []


async def test_the_signature_is_of_the_secret_the_bytes_and_the_address(
    trello: FakeTrello,
) -> None:
    body, url = b'{"a": 1}', "https://example.com/hook"
    said = trello.webhook_delivery.headers(body, url)["X-Trello-Webhook"]
    digest = hmac.new(trello.secret.encode(), body + url.encode(), hashlib.sha1).digest()
    assert said == base64.b64encode(digest).decode()
    for other in ((body + b" ", url), (body, url + "/")):
        assert trello.webhook_delivery.headers(*other)["X-Trello-Webhook"] != said
    raw = json.dumps(json.loads(b'{"a":1}')).encode()
    assert raw == body


async def test_only_what_is_watched_is_delivered(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    todo: str,
    card: str,
    ears: WebhookReceiver,
) -> None:
    other = trello.card(board, todo, "Other")
    await run_in_thread(client.create_hook, ears.url, card)
    doing = trello.list(board, "Doing")
    trello.move(other, doing)
    trello.move(card, doing)
    trello.archive(card)
    await trello.deliver()
    assert ears.kinds == ["updateCard", "updateCard"]
    assert [one.body["model"]["closed"] for one in ears.heard] == [False, True]


async def test_webhooks_hear_what_no_list_has(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    card: str,
    anna: str,
    ears: WebhookReceiver,
) -> None:
    await run_in_thread(client.create_hook, ears.url, board)
    fix = trello.label(board, "fix", None)
    trello.add_label(card, fix)
    comment = trello.comment(card, anna, "one")
    trello.edit_comment(comment, "two")
    trello.delete_comment(comment)
    trello.delete_card(card)
    await trello.deliver()
    kinds = "createLabel addLabelToCard commentCard updateComment deleteComment deleteCard"
    assert ears.kinds == kinds.split()
    edited, deleted, gone = (one.action["data"] for one in ears.heard[3:])
    assert (edited["action"], edited["old"]) == ({"id": comment, "text": "two"}, {"text": "one"})
    assert deleted["action"] == {"id": comment}
    assert "name" not in gone["card"]
    assert ears.heard[2].action["data"]["text"] == "one"


async def three(
    trello: FakeTrello, client: TrelloClient, ears: WebhookReceiver, card: str
) -> list[str]:
    """Make a webhook, and three comments; return their ids."""
    await run_in_thread(client.create_hook, ears.url, trello.card_now(card)["idBoard"])
    return [trello.comment(card, trello.someone, str(number)) for number in range(3)]


def ids(ears: WebhookReceiver) -> list[str]:
    """Return what was heard."""
    return [one.action["id"] for one in ears.heard]


async def test_a_delivery_can_be_doubled_shuffled_lost_and_replayed(
    trello: FakeTrello, client: TrelloClient, card: str, ears: WebhookReceiver
) -> None:
    made = await three(trello, client, ears, card)

    def first(action: Json) -> bool:
        return bool(action["id"] == made[0])

    await trello.deliver(copies=2, shuffle=3)
    assert sorted(ids(ears)) == sorted(made * 2)
    heard = list(ears.heard)
    ears.heard.clear()
    await trello.deliver(replay=True, shuffle=3)
    assert (sorted(ids(ears)), ids(ears) == made) == (made, False)
    ears.heard.clear()
    await trello.deliver(replay=True, drop=first)
    assert ids(ears) == made[1:]
    assert {one.raw for one in ears.heard} <= {one.raw for one in heard}
    ears.heard.clear()
    late = trello.comment(card, trello.someone, "late")
    await trello.deliver(drop=lambda action: True)
    assert ids(ears) == []
    await trello.deliver(replay=True)
    assert ids(ears) == [*made, late]


async def test_deliveries_can_come_together(
    trello: FakeTrello, client: TrelloClient, card: str, ears: WebhookReceiver
) -> None:
    made = await three(trello, client, ears, card)
    trello.webhook_delivery.retries = 0
    ears.silent = asyncio.Event()
    ears.statuses = [500] * 3
    going = asyncio.create_task(trello.deliver(together=True))

    async def all_came() -> bool:
        return len(ears.heard) == 3

    await until(all_came, "three deliveries at once")
    ears.silent.set()
    assert [one.status for one in await going] == [500] * 3
    assert sorted(ids(ears)) == sorted(made)


async def test_what_is_not_taken_is_sent_again_and_counted(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, ears: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, ears.url, board)
    ears.statuses = [500, 401, 302]
    trello.comment(card, trello.someone, "hello")
    (ack,) = await trello.deliver()
    assert (ack.status, ack.attempts, len(ears.heard)) == (200, 4, 4)
    assert trello.webhooks[0]["consecutiveFailures"] == 0
    ears.statuses = [500] * 4
    trello.comment(card, trello.someone, "hello")
    assert [one.acked for one in await trello.deliver()] == [False]
    assert trello.webhooks[0]["consecutiveFailures"] == 4
    assert trello.webhooks[0]["firstConsecutiveFailDate"]
    assert trello.webhooks[0]["active"]


async def test_a_callback_that_does_not_answer_is_given_up(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, ears: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, ears.url, board)
    trello.webhook_delivery.patience, trello.webhook_delivery.retries = 0.05, 0
    ears.silent = asyncio.Event()
    trello.comment(card, trello.someone, "hello")
    (ack,) = await trello.deliver()
    ears.silent.set()
    assert (ack.status, ack.acked) == (None, False)
    assert trello.webhooks[0]["consecutiveFailures"] == 1


async def test_gone_deletes_a_webhook(
    trello: FakeTrello, client: TrelloClient, card: str, ears: WebhookReceiver
) -> None:
    await three(trello, client, ears, card)
    ears.statuses = [410]
    acks = await trello.deliver()
    assert (acks[0].status, acks[0].attempts) == (410, 1)
    assert trello.webhooks == []


async def test_too_many_failures_switch_a_webhook_off_until_it_is_repaired(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, ears: WebhookReceiver
) -> None:
    made = await run_in_thread(client.create_hook, ears.url, board)
    trello.webhook_delivery.disable_after, trello.webhook_delivery.retries = 2, 0
    ears.statuses = [500] * 2
    for _ in range(2):
        trello.comment(card, trello.someone, "hello")
        await trello.deliver()
    assert (trello.webhooks[0]["active"], trello.webhooks[0]["consecutiveFailures"]) == (False, 2)
    trello.comment(card, trello.someone, "unheard")
    assert await trello.deliver() == []
    path, said = f"/webhooks/{made.id}", {"active": "true"}
    ears.head = 500
    assert (await refusal(client.fetch_json, path, "PUT", post_args=said))[0] == 400
    ears.head = 200
    found = await run_in_thread(client.fetch_json, path, "PUT", post_args=said)
    assert (found["active"], found["consecutiveFailures"]) == (True, 0)
    trello.comment(card, trello.someone, "heard")
    assert len(await trello.deliver()) == 1
    trello.deactivate(made.id)
    assert not (await run_in_thread(client.fetch_json, path))["active"]


async def test_a_revoked_token_loses_its_webhooks(
    trello: FakeTrello, client: TrelloClient, card: str, ears: WebhookReceiver
) -> None:
    await three(trello, client, ears, card)
    trello.revoke()
    assert trello.webhooks == []
    trello.comment(card, trello.someone, "unheard")
    assert len(await trello.deliver()) == 3
