"""Mail by Debian's Postfix, Dovecot and OpenDKIM: questions, replies, forgeries, vacations."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import AsyncIterator, Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest
from imapclient import IMAPClient

from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman_bots.mail.doctor import checks
from draftsman_bots.mail.service import create
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.waits import until
from tests.bots.mail.conftest import with_mail
from tests.bots.mail.mail_side import ADDRESS, CONFIRMED, KEY, text_of
from tests.bots.mail.test_answers import GATE
from tests.soak.mail_servers import PASSWORD, SERVER, MailServers, mail_servers, missing

pytestmark = [pytest.mark.timeout(180), pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def servers() -> Iterator[MailServers]:
    """Provide the servers."""
    with mail_servers() as servers:
        yield servers


@pytest.fixture
def settings(settings: Settings, servers: MailServers, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Provide a configuration with the servers."""
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.setenv("MAIL_KEY", KEY.decode())
    account = {"user": ADDRESS, "password": {"env": "MAIL_PASSWORD"}}
    table = {
        "address": ADDRESS,
        "smtp": {"host": "127.0.0.1", "port": servers.smtp},
        "imap": {"host": "127.0.0.1", "port": servers.imap} | account,
        "poll": 1,
        "reply_key": {"env": "MAIL_KEY"},
        "authserv_id": SERVER,
    }
    return with_mail(settings, table)


@pytest.fixture
async def bot(rt: Runtime) -> AsyncIterator[None]:
    """Send and read mail."""
    bot = create(rt)
    running = asyncio.create_task(bot.run())
    yield
    bot.stop.set()
    await running


async def test_a_reply_decides_and_a_forged_one_does_not(
    rt: Runtime, make: Factory, servers: MailServers, bot: None
) -> None:
    work = await make.asked(GATE, notify=("mail:carol@example.org",), title="Größe der Läden")
    asked = await _mail(servers, "carol", "asks for approval")
    assert asked["Subject"] == f"{work.name}: Größe der Läden"
    _send(servers.smtp, asked, "carol", "approve", forged=True)
    refused = await _mail(servers, "carol", "has no effect")
    assert "neither DKIM nor SPF passed" in text_of(refused)
    _send(servers.submission, asked, "dave", "approve")
    _send(servers.submission, asked, "carol", "deny", automatic=True)
    (question,), _ = await rt.questions.of_job(work.number)
    assert question.status == "open"
    _send(servers.submission, asked, "carol", "deny\nnot on a Friday\n-- \nCarol")
    closed = await _mail(servers, "carol", "was denied by carol: not on a Friday")
    assert closed["References"] == asked["References"]


async def test_a_question_is_answered_after_its_unknown_recipient_bounced(
    rt: Runtime, make: Factory, servers: MailServers, bot: None
) -> None:
    work = await make.asked(QUESTION, notify=("mail:ben@example.org", "mail:gone@example.net"))
    asked = await _mail(servers, "ben", work.name)
    _send(servers.submission, asked, "ben", "red")
    await _mail(servers, "ben", f"{work.name}/1 was answered by ben: red")


async def test_doctor_signs_in(settings: Settings) -> None:
    found = [check async for check in checks(settings)]
    assert [check.status for check in found] == ["ok", "ok"], found


def _send(
    port: int,
    asked: EmailMessage,
    person: str,
    text: str,
    *,
    forged: bool = False,
    automatic: bool = False,
) -> None:
    """Reply in the name of a person, by the server that signs, or as anybody else."""
    mail = EmailMessage()
    if forged:
        mail["Authentication-Results"] = CONFIRMED.partition(": ")[2]
    if automatic:
        mail["Auto-Submitted"] = "auto-replied"
    mail["From"] = f"{person}@example.org"
    mail["To"] = asked["Reply-To"]
    mail["Subject"] = f"Re: {asked['Subject']}"
    mail["Message-ID"] = f"<{abs(hash((text, forged)))}@mail.example.org>"
    mail["In-Reply-To"] = asked["Message-ID"]
    mail.set_content(text)
    with smtplib.SMTP("127.0.0.1", port, timeout=20) as server:
        server.send_message(mail)


async def _mail(servers: MailServers, person: str, text: str) -> EmailMessage:
    """Wait for a mail with a text in the mailbox of a person."""
    found: list[EmailMessage] = []

    async def look() -> bool:
        mails = await asyncio.to_thread(_mails, servers, person)
        found[:] = [mail for mail in mails if text in text_of(mail)]
        return bool(found)

    await until(look, f"a mail to {person} with {text!r}", 30)
    return found[-1]


def _mails(servers: MailServers, person: str) -> list[EmailMessage]:
    with IMAPClient("127.0.0.1", servers.imap, ssl=False, timeout=10) as client:
        client.login(f"{person}@example.org", PASSWORD)
        client.select_folder("INBOX", readonly=True)
        uids = client.search()
        fetched = client.fetch(uids, ["BODY.PEEK[]"]) if uids else {}
    return [message_from_bytes(fetched[uid][b"BODY[]"], policy=default) for uid in uids]
