"""Signed webhooks, checked by a receiver that uses no library of draftsman."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from draftsman.errors import UsageError
from draftsman.outbound.webhook_signature import keys, sign, verify
from tests.support.cases import cases

# The example of the Standard Webhooks specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_signature_matches_the_example_of_the_specification() -> None:
    headers = sign(keys(SECRET), ID, AT, BODY)
    assert headers == {
        "webhook-id": ID,
        "webhook-timestamp": str(AT),
        "webhook-signature": SIGNATURE,
    }


def test_another_implementation_computes_the_same_signature() -> None:
    secret = base64.b64encode(b"0123456789abcdef0123").decode()
    headers = sign(keys(secret), "id", 7, b"\x00body")
    expected = hmac.new(b"0123456789abcdef0123", b"id.7.\x00body", hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()


def test_a_changed_message_is_refused() -> None:
    known = keys(SECRET)
    headers = sign(keys(SECRET), ID, AT, BODY)
    assert verify(known, headers, BODY, AT + 300)
    assert not verify(known, headers, BODY + b" ", AT)
    assert not verify(known, headers, BODY, AT + 301)
    assert not verify(known, headers, BODY, AT - 301)
    for name in headers:
        assert not verify(known, headers | {name: ""}, BODY, AT)
        assert not verify(known, headers | {name: headers[name] + "1"}, BODY, AT)
    assert not verify(keys("c" * 40), headers, BODY, AT)


def test_two_secrets_sign_while_one_replaces_the_other() -> None:
    old = "a" * 40
    new = "b" * 40
    headers = sign(keys(f"{new}\n{old}\n"), ID, AT, BODY)
    assert verify(keys(old), headers, BODY, AT)
    assert verify(keys(new), headers, BODY, AT)


@cases("secret", ["", "  \n", "short", "whsec_", "not base64 at all!", "YWJj"])
def test_an_invalid_secret_is_refused_in_one_line(secret: str) -> None:
    with pytest.raises(UsageError, match=r"secret is .*openssl rand -base64 32") as raised:
        keys(secret)
    assert "\n" not in str(raised.value)
