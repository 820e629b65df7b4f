"""The checks of `draftsman doctor`, and the table `[mail]`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from draftsman.errors import ConfigError
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_bots.mail.doctor import checks
from draftsman_bots.mail.service import create
from draftsman_bots.mail.settings import MailAccount, MailServer, MailSettings
from tests.bots.mail.conftest import with_mail
from tests.bots.mail.mail_side import MailSide

SMTP = {"host": "mail.example.org", "port": 465}
MAIL: dict[str, Any] = {
    "address": "draftsman@example.org",
    "smtp": SMTP,
    "reply_key": {"env": "MAIL_KEY"},
}


async def _statuses(settings: Settings) -> list[str]:
    return [check.status async for check in checks(settings)]


async def test_both_servers_are_asked(settings: Settings, side: MailSide) -> None:
    assert await _statuses(settings) == ["ok", "ok"]
    side.imap.login = (b"x", b"y")
    assert await _statuses(settings) == ["ok", "fail"]
    side.smtp.close()
    await side.smtp.wait_closed()
    assert await _statuses(settings) == ["fail", "fail"]


async def test_replies_without_effect_are_a_warning(settings: Settings, side: MailSide) -> None:
    for missing in ({"authserv_id": ""}, {"imap": None}):
        changed = with_mail(settings, side.settings(**missing))
        assert await _statuses(changed) == ["ok", "warn"]


async def test_a_missing_password_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAIL_PASSWORD")
    texts = [check.text async for check in checks(settings)]
    assert "MAIL_PASSWORD" in texts[1]


def test_a_short_key_is_refused(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_KEY", "short")
    with pytest.raises(ConfigError, match="reply_key has less than 32 characters"):
        create(rt)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"address": f"{'d' * 22}@example.org"}, "at most 21 characters"),
        ({"address": "a+b@example.org"}, "without a"),
        ({"address": "Draftsman <d@example.org>"}, "e-mail address"),
        ({"address": "d@example.org\nBcc: x@y.z"}, "e-mail address"),
        ({"templates": {"bug": "bug"}}, "e-mail address"),
        ({"reply_key": "secret"}, "reference"),
    ],
)
def test_a_wrong_table_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        MailSettings.model_validate(MAIL | change)


@pytest.mark.parametrize(
    ("written", "addresses"),
    [
        ("Anna@Example.org", ("anna@example.org",)),
        (["b@x.org", "A@x.org", "B@x.org"], ("b@x.org", "a@x.org")),
    ],
)
def test_addresses_are_in_lower_case_and_in_order(written: object, addresses: object) -> None:
    assert MailAccount.model_validate({"mail": written}).mail == addresses


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("mail.example.org", 465, (True, False)),
        ("mail.example.org", 993, (True, False)),
        ("mail.example.org", 25, (False, True)),
        ("127.0.0.1", 25, (False, False)),
        ("localhost.evil.test", 143, (False, True)),
    ],
)
def test_no_password_is_sent_in_clear(host: str, port: int, expected: tuple[bool, bool]) -> None:
    server = MailServer(host=host, port=port)
    assert (server.has_tls, server.has_starttls) == expected
