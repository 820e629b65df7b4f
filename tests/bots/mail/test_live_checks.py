"""The live checks of mail servers, on a server that delivers to its own mailbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from email.message import EmailMessage
from typing import Any, Final

import pytest

from draftsman.settings import Settings, settings_model
from draftsman_bots.mail.live_checks import LIVE_CHECKS
from draftsman_testing.channel.live_contract import LiveContract, Onlooker
from tests.bots.mail.mail_side import CONFIRMED, PASSWORD, MailSide, open_side

OTHER: Final = "Authentication-Results: {}; dkim=pass header.d=example.org"


class LiveMail:
    """The account of draftsman; each mail arrives as soon as somebody waits for it."""

    service = "mail"
    scratch = None
    secret = PASSWORD

    def __init__(self, side: MailSide) -> None:
        self.side = side
        self.person = Onlooker(lambda _: self.deliver())
        self.settings: Settings = settings_model().model_validate({"mail": side.settings()})
        self.confirmed = CONFIRMED
        self.loses = False
        self.rewritten: dict[str, str] = {}
        self.seen = False

    @property
    def table(self) -> object:
        return getattr(self.settings, "mail", None)

    def deliver(self) -> None:
        """Let the mails arrive that draftsman sent."""
        while self.side.sent:
            mail = self.side.sent.pop()
            if self.loses:
                continue
            self._rewrite(mail)
            head = f"{self.confirmed}\r\n" if self.confirmed else ""
            uid = self.side.imap.deliver(head.encode() + mail.as_bytes())
            if self.seen:
                self.side.imap.mails[uid].flags.add(rb"\Seen")

    def _rewrite(self, mail: EmailMessage) -> None:
        for name, value in self.rewritten.items():
            mail.replace_header(name, value)

    def written(self) -> Collection[object]:
        return [*self.side.imap.mails]

    def echo(self) -> None:
        self.confirmed = OTHER.format(self.secret)

    def keep(self) -> None:
        self.side.imap.refused = b"EXPUNGE"


def _sets(name: str, value: Any) -> Callable[[LiveMail], object]:
    return lambda side: setattr(side, name, value)


BREAKS: Final[Mapping[str, Callable[[LiveMail], object]]] = {
    "plus-address": _sets("loses", True),
    "name-of-server": _sets("confirmed", OTHER.format("mx.evil.test")),
    "confirmed-sender": _sets("confirmed", CONFIRMED.replace("pass", "fail")),
    "message-id": _sets("rewritten", {"Message-ID": "<1@relay.test>"}),
    "auto-submitted": _sets("rewritten", {"Auto-Submitted": "no"}),
    "stays-unseen": _sets("seen", True),
}


class TestLiveChecks(LiveContract):
    checks = LIVE_CHECKS
    breaks = BREAKS

    @pytest.fixture
    async def side(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveMail]:
        monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
        monkeypatch.setenv("MAIL_KEY", "k" * 40)
        async with open_side() as side:
            yield LiveMail(side)
            assert side.imap.violations == []
