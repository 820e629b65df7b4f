"""The channel `webhook`: signed, at least once, the same id on every repetition.

The receivers here are not ours: the `standardwebhooks` library, and `openssl`.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx
from standardwebhooks import Webhook, WebhookVerificationError

from draftsman.deliveries.channels.webhook_channel import WebhookChannel
from draftsman.deliveries.delivery import NOT_SERVED, Receipt, Unconfirmed
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, classify
from draftsman.outbound.webhook_signature import keys, sign
from draftsman.settings.http import HttpSettings
from draftsman.settings.secret import SecretSettings
from draftsman.settings.webhooks import WebhookSettings
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.channel.samples import message
from tests.support.faulty_server import FaultyServer, head, web

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
NEW = "whsec_" + base64.b64encode(b"fedcba9876543210fedcba9876543210").decode()
VARIABLE = "HOOK_SECRET_OF_THE_TEST"


class WebhookEndpoint:
    """A mocked endpoint; a connection that closes without a response is of a real server."""

    target = "webhook:ops"
    missing = "ref"
    finds = False
    faults = frozenset({Fault.LOST_REPLY, Fault.RATE_LIMIT, Fault.REFUSED, Fault.UNREACHABLE})

    def __init__(self, site: FaultyServer, mock: respx.MockRouter) -> None:
        self.url = site.url("/hook")
        self.channel = channel_to(self.url)
        self.hook = mock.post(self.url).respond(204)
        self._site = site
        self._mock = mock

    @property
    def requests(self) -> list[httpx.Request]:
        """Return the requests to the hook."""
        return [call.request for call in self.hook.calls]

    def posts(self) -> list[Post]:
        """Return the id and text of each message."""
        sent: list[tuple[Mapping[str, str], bytes]]
        sent = [(request.headers, request.content) for request in self.requests]
        if self._site.routes:
            sent = [(request.headers, request.body) for request in self._site.requests]
        return [Post(head["webhook-id"], json.loads(body)["data"]["text"]) for head, body in sent]

    async def fail(self, fault: Fault) -> None:
        match fault:
            case Fault.LOST_REPLY:
                self._site.routes["/hook"] = b""
                self.hook.pass_through()
            case Fault.RATE_LIMIT:
                self.hook.respond(429, headers={"retry-after": f"{RETRY_AFTER:.0f}"})
            case Fault.REFUSED:
                self.hook.respond(400, text="no, because")
            case _:
                self._mock.route(port=1).pass_through()
                self.channel = channel_to("http://127.0.0.1:1/hook")


def channel_to(url: str, timeout: float = 5, **http: Any) -> WebhookChannel:
    """Return a channel with one endpoint."""
    hooks = {"ops": WebhookSettings(url=url, secret=SecretSettings(env=VARIABLE))}
    return WebhookChannel(hooks, HttpSettings(**http), timeout)


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
async def site() -> AsyncIterator[FaultyServer]:
    async with web() as server:
        yield server


@pytest.fixture
def place(site: FaultyServer) -> Iterator[WebhookEndpoint]:
    with respx.mock(assert_all_called=False) as mock:
        yield WebhookEndpoint(site, mock)


async def endless(piece: bytes) -> AsyncIterator[bytes]:
    """Yield a body that never ends."""
    while True:
        yield piece


class TestWebhook(ChannelContract):
    """The contract, kept by an endpoint."""


async def test_another_implementation_accepts_the_signature_and_refuses_a_changed_body(
    place: WebhookEndpoint,
) -> None:
    await place.channel.send(message())
    (request,) = place.requests
    receiver = Webhook(SECRET)
    body = request.content
    headers = dict(request.headers)
    content = receiver.verify(body, headers)
    assert content["type"] == "job.result"
    assert content["data"]["job"]["name"] == "D-7"
    with pytest.raises(WebhookVerificationError):
        receiver.verify(body.replace(b"D-7", b"D-8"), headers)
    with pytest.raises(WebhookVerificationError):
        receiver.verify(body, headers | {"webhook-id": "another"})
    stale = str(int(time.time()) - 3600)
    with pytest.raises(WebhookVerificationError):
        receiver.verify(body, headers | {"webhook-timestamp": stale})


def test_openssl_computes_the_same_signature() -> None:
    signed = b"msg_1.1700000000." + b'{"a": 1}'
    key = base64.b64decode(SECRET.removeprefix("whsec_")).hex()
    done = subprocess.run(
        ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{key}", "-binary"],
        input=signed,
        capture_output=True,
        check=True,
    )
    expected = f"v1,{base64.b64encode(done.stdout).decode()}"
    headers = sign(keys(SECRET), "msg_1", 1_700_000_000, b'{"a": 1}')
    assert headers["webhook-signature"] == expected


async def test_every_retry_has_the_same_id_and_a_new_timestamp(
    place: WebhookEndpoint,
) -> None:
    now = [time.time() - 100]
    place.channel._now = lambda: now[0]
    sent = message()
    await place.channel.send(sent)
    now[0] += 60
    await place.channel.send(sent)
    first, second = (request.headers for request in place.requests)
    assert first["webhook-id"] == second["webhook-id"] == sent.marker
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 60
    for request in place.requests:
        Webhook(SECRET).verify(request.content, dict(request.headers))


async def test_a_secret_file_is_read_again_for_each_request(
    place: WebhookEndpoint, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    hooks = {"ops": WebhookSettings(url=place.url, secret=SecretSettings(file=file))}
    channel = WebhookChannel(hooks, HttpSettings(), 5)
    await channel.send(message())
    file.write_text(f"{NEW}\n{SECRET}\n")
    await channel.send(message())
    file.write_text(NEW)
    await channel.send(message())
    old, both, new = place.requests
    for secret, request in ((SECRET, old), (SECRET, both), (NEW, both), (NEW, new)):
        Webhook(secret).verify(request.content, dict(request.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(new.content, dict(new.headers))


@pytest.mark.parametrize("secret", ["", "   ", "whsec_", "whsec_not-base64!", "plain words"])
async def test_without_a_secret_nothing_is_sent(
    place: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv(VARIABLE, secret)
    outcome = await place.channel.send(message())
    assert isinstance(outcome, Failure)
    assert outcome.code == NOT_SERVED
    assert place.channel.served() == []
    assert place.requests == []
    assert "not-base64" not in str(outcome)
    assert "plain words" not in str(outcome)


async def test_an_unknown_webhook_is_left_to_another_process(place: WebhookEndpoint) -> None:
    outcome = await place.channel.send(message(target="nobody"))
    assert isinstance(outcome, Failure)
    assert outcome.code == NOT_SERVED
    assert "nobody" not in place.channel.served()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, ErrorClass.PERMANENT),
        (410, ErrorClass.PERMANENT),
        (429, ErrorClass.TRANSIENT_APP),
        (500, ErrorClass.TRANSIENT_INFRA),
        (503, ErrorClass.TRANSIENT_APP),
    ],
)
async def test_a_refusal_is_classified_by_its_status(
    place: WebhookEndpoint, status: int, expected: ErrorClass
) -> None:
    place.hook.respond(status, text="no, because")
    outcome = await place.channel.send(message())
    assert isinstance(outcome, Failure)
    assert classify(outcome) is expected
    assert str(outcome) == f"HTTP {status}: no, because"


async def test_a_redirect_is_not_followed(place: WebhookEndpoint) -> None:
    place.hook.respond(307, headers={"location": "/elsewhere"})
    assert isinstance(await place.channel.send(message()), Failure)
    assert len(place.requests) == 1


async def test_an_endless_error_body_is_truncated(place: WebhookEndpoint) -> None:
    place.hook.respond(400, content=endless(b"x" * 65536))
    outcome = await place.channel.send(message())
    assert isinstance(outcome, Failure)
    assert str(outcome) == f"HTTP 400: {'x' * 500}"


async def test_status_200_is_a_receipt_despite_an_endless_body(place: WebhookEndpoint) -> None:
    place.hook.respond(200, content=endless(b"x" * 65536))
    assert isinstance(await place.channel.send(message()), Receipt)


async def test_a_timeout_is_unconfirmed(site: FaultyServer) -> None:
    site.routes["/"] = site.stall(b"")
    outcome = await channel_to(site.url(), 0.2).send(message())
    assert isinstance(outcome, Unconfirmed)
    assert len(site.requests) == 1


async def test_an_error_status_is_a_failure_despite_a_stalled_body(site: FaultyServer) -> None:
    site.routes["/"] = site.stall(head(400, "Bad Request", content_length="9") + b"no")
    outcome = await channel_to(site.url(), 0.3).send(message())
    assert isinstance(outcome, Failure)
    assert (outcome.http_status, str(outcome)) == (400, "HTTP 400")


async def test_only_configured_addresses_are_reached(
    place: WebhookEndpoint,
) -> None:
    url = place.url.replace("127.0.0.1", "127.1")  # a name, for a resolver
    outcome = await channel_to(url).send(message())
    assert isinstance(outcome, Failure)
    assert (outcome.code, classify(outcome)) == ("address_refused", ErrorClass.PERMANENT)
    assert "http.allow" in str(outcome)
    assert place.requests == []
    assert isinstance(await channel_to(url, allow=("127.0.0.0/8",)).send(message()), Receipt)


async def test_a_receipt_names_the_message(place: WebhookEndpoint) -> None:
    sent = message()
    assert await place.channel.send(sent) == Receipt(sent.marker)
