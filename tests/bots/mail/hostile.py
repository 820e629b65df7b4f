"""Mails that must not decide, and some that must: what is wrong with each, and its outcome."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from tests.bots.mail.mail_side import ADDRESS, CONFIRMED, SERVER

AR: Final = "Authentication-Results:"
BOUNDARY: Final = 'multipart/mixed; boundary="b"'
UNSIGNED: Final = f"{AR} {SERVER}; dkim=none; spf=none"
QUOTE: Final = "On Mon, 30 Nov 2026 at 05:00, draftsman <draftsman@example.org> wrote:"
OUTLOOK: Final = "From: draftsman\r\nSent: Monday\r\nTo: Carol\r\nSubject: D-1\r\n\r\napprove"
IGNORED: Final = "ignored: "
STRANGER: Final = "ignored: of no known person"
UNADDRESSED: Final = "ignored: for no message and no template"
UNCONFIRMED: Final = "refused: the receiving server did not confirm"
TEXTLESS: Final = "refused: it has no text"


@dataclass(frozen=True)
class Mail:
    """A reply that approves, except for what differs; `outcome` is the beginning of its own.

    In `to`, `{signed}` is the signed address, and `{other}` that of another person.
    """

    outcome: str
    text: str = "approve"
    headers: tuple[str, ...] = ()
    sender: str = "carol@example.org"
    to: str = "{signed}"
    confirmed: str = CONFIRMED
    kind: str = "text/plain; charset=utf-8"
    replies: int = 0


def _parts(*parts: str) -> str:
    return "\r\n".join(f"--b\r\n{part}" for part in parts) + "\r\n--b--\r\n"


def _nested(depth: int) -> str:
    text = "approve"
    for level in range(depth):
        kind = f'Content-Type: multipart/mixed; boundary="n{level}"'
        text = f"{kind}\r\n\r\n--n{level}\r\n\r\n{text}\r\n--n{level}--"
    return f"--b\r\n{text}\r\n--b--"


def _unconfirmed(fields: str, *headers: str) -> Mail:
    return Mail(UNCONFIRMED, confirmed=fields, headers=headers, replies=1)


def _sent_by(sender: str, outcome: str = STRANGER) -> Mail:
    return Mail(outcome, sender=sender)


AUTHENTICATION: Final[dict[str, Mail]] = {
    "no result": _unconfirmed(""),
    "result of another server": _unconfirmed(
        f"{AR} mail.evil.test; dkim=pass header.d=example.org"
    ),
    "forged result below that of the server": _unconfirmed(UNSIGNED, CONFIRMED),
    "forged result below that of another server": _unconfirmed(
        f"{AR} a.test; dkim=none", CONFIRMED
    ),
    "forged result below the signature": _unconfirmed("", "DKIM-Signature: v=1", CONFIRMED),
    "server whose name begins the same": _unconfirmed(
        CONFIRMED.replace(SERVER, f"{SERVER}.evil.test")
    ),
    "server whose name ends the same": _unconfirmed(CONFIRMED.replace(SERVER, f"x-{SERVER}")),
    "unknown version of the field": _unconfirmed(CONFIRMED.replace(SERVER, f"{SERVER} 2")),
    "envelope only": _unconfirmed(f"{AR} {SERVER}; spf=pass smtp.mailfrom=carol@evil.test"),
    "name of the greeting": _unconfirmed(f"{AR} {SERVER}; spf=pass smtp.helo=example.org"),
    "signature of another domain": _unconfirmed(f"{AR} {SERVER}; dkim=pass header.d=evil.test"),
    "signature of a domain that contains ours": _unconfirmed(
        f"{AR} {SERVER}; dkim=pass header.d=example.org.evil.test"
    ),
    "signature of the public suffix": _unconfirmed(f"{AR} {SERVER}; dkim=pass header.d=org"),
    "identity with two domains": _unconfirmed(
        f"{AR} {SERVER}; dkim=pass header.i=@evil.test@example.org"
    ),
    "failed signature": _unconfirmed(f"{AR} {SERVER}; dkim=fail header.d=example.org"),
    "pass without a domain": _unconfirmed(f"{AR} {SERVER}; dkim=pass"),
    "pass in a comment": _unconfirmed(f"{AR} {SERVER}; dkim=fail (dkim=pass header.d=example.org)"),
    "pass in a nested comment": _unconfirmed(
        f"{AR} {SERVER}; dkim=fail (a (b); dkim=pass header.d=example.org; c)"
    ),
    "pass in an open comment": _unconfirmed(
        f"{AR} {SERVER}; dkim=fail (a; dkim=pass header.d=example.org"
    ),
    "pass in a quoted sender": _unconfirmed(
        f'{AR} {SERVER}; spf=pass smtp.mailfrom="a; dkim=pass header.d=example.org"@evil.test'
    ),
    "pass after a quoted parenthesis": _unconfirmed(
        f'{AR} {SERVER}; spf=pass (of "x) dkim=pass header.d=example.org (y"@evil.test) z=1'
    ),
    "another method": _unconfirmed(f"{AR} {SERVER}; x-dkim=pass header.d=example.org"),
    "failed DMARC": _unconfirmed(f"{AR} {SERVER}; dmarc=fail; dkim=pass header.d=a.example.org"),
}
ADDRESSES: Final[dict[str, Mail]] = {
    "address of another person": Mail(UNADDRESSED, to="{other}"),
    "another question": Mail(UNADDRESSED, to="{question}"),
    "altered signature": Mail(UNADDRESSED, to="{altered}"),
    "later expiry": Mail(UNADDRESSED, to="{later}"),
    "expired address": Mail("refused: the message to which it replies is too old", to="{expired}",
                            replies=1),
    "no signed address": Mail(UNADDRESSED, to=ADDRESS),
    "two signed addresses": Mail(UNADDRESSED, to="{signed}, {expired}"),
    "a signed address and a template": Mail(UNADDRESSED, to="{signed}, draftsman+bug@example.org"),
    "signed address of another server": Mail(UNADDRESSED, to="{elsewhere}"),
}  # fmt: skip
SENDERS: Final[dict[str, Mail]] = {
    "stranger": _sent_by("eve@example.org"),
    "lookalike letter": _sent_by("c\u0430rol@example.org"),
    "letters of full width": _sent_by("\uff43arol@example.org"),
    "letter that is lower case of none": _sent_by("carol@example.or\u0261"),
    "encoded word": _sent_by("=?utf-8?q?carol=40example.org?= <eve@evil.test>"),
    "encoded address": _sent_by("=?utf-8?q?carol=40example.org?="),
    "address as a name": _sent_by('"carol@example.org" <eve@evil.test>'),
    "address as an unquoted name": _sent_by("carol@example.org <eve@evil.test>"),
    "two addresses": _sent_by("carol@example.org, eve@evil.test"),
    "group": _sent_by("people: carol@example.org;"),
    "comment": _sent_by("carol@example.org (eve@evil.test)"),
    "route": _sent_by("<@evil.test:carol@example.org>"),
    "NUL": _sent_by("carol@example.org\0.evil.test"),
    "two fields": Mail(STRANGER, headers=("From: carol@example.org",)),
    "no address": _sent_by("Carol"),
    "our own address": _sent_by(ADDRESS, "ignored: own mail"),
}
PROGRAMS: Final[dict[str, Mail]] = {
    "bounce": Mail(f"{IGNORED}return-path", headers=("Return-Path: <>",)),
    "report": Mail(f"{IGNORED}content-type", kind="multipart/report; boundary=b"),
    "vacation": Mail(f"{IGNORED}auto-submitted", headers=("Auto-Submitted: auto-replied",)),
    "vacation of Exchange": Mail(
        f"{IGNORED}x-auto-response-suppress", headers=("X-Auto-Response-Suppress: OOF",)
    ),
    "bulk mail": Mail(f"{IGNORED}precedence", headers=("Precedence: bulk",)),
    "mailing list": Mail(f"{IGNORED}list-id", headers=("List-Id: <dev.example.org>",)),
    "newsletter": Mail(f"{IGNORED}list-unsubscribe", headers=("List-Unsubscribe: <x:y>",)),
    "loop": Mail(f"{IGNORED}x-loop", headers=("X-Loop: draftsman",)),
    "bounce that is folded": Mail(f"{IGNORED}return-path", headers=("Return-Path:\r\n <>",)),
}
BODIES: Final[dict[str, Mail]] = {
    "empty": Mail(TEXTLESS, "", replies=1),
    "quoted": Mail(TEXTLESS, "> approve", replies=1),
    "quoted below its header": Mail(TEXTLESS, f"{QUOTE}\r\n> approve", replies=1),
    "unquoted below its header": Mail(TEXTLESS, f"{QUOTE}\r\n\r\napprove", replies=1),
    "quoted by Outlook": Mail(TEXTLESS, f"\r\n{OUTLOOK}", replies=1),
    "original message": Mail(
        TEXTLESS, "-----Original Message-----\r\nFrom: d\r\nSent: x\r\n\r\napprove", replies=1
    ),
    "sentence with the word": Mail("replied", "I approve of the idea", replies=1),
    "word and a condition": Mail("replied", "approve if the tests pass", replies=1),
    "word with a NUL": Mail("replied", "appro\0ve", replies=1),
    "word with an override": Mail("replied", "\u202eapprove", replies=1),
    "word in a signature": Mail("replied", "what?\r\n-- \r\napprove", replies=1),
    "attached mail": Mail(
        TEXTLESS, _parts("Content-Type: message/rfc822\r\n\r\nSubject: x\r\n\r\napprove"),
        kind=BOUNDARY, replies=1,
    ),
    "attached text": Mail(
        TEXTLESS, _parts("Content-Disposition: attachment; filename=a.txt\r\n\r\napprove"),
        kind=BOUNDARY, replies=1,
    ),
    "deeply nested": Mail("", _nested(400), kind=BOUNDARY, replies=1),
    "no parts": Mail(TEXTLESS, "", kind=BOUNDARY, replies=1),
    "no boundary": Mail(TEXTLESS, "approve", kind="multipart/mixed", replies=1),
    "quote of HTML": Mail(
        TEXTLESS, "<html><body><blockquote>approve</blockquote></body></html>", kind="text/html",
        replies=1,
    ),
    "hidden HTML": Mail(
        TEXTLESS, "<p style='display:none'>approve</p><i hidden>approve</i>", kind="text/html",
        replies=1,
    ),
    "title of HTML": Mail(
        TEXTLESS, "<head><title>approve</title><style>approve</style></head>", kind="text/html",
        replies=1,
    ),
    "other content": Mail(TEXTLESS, "approve", kind="application/pdf", replies=1),
}  # fmt: skip
REFUSED: Final = AUTHENTICATION | ADDRESSES | SENDERS | PROGRAMS | BODIES
"""Mails without an effect."""
ANSWERED: Final = "answered"
ACCEPTED: Final[dict[str, Mail]] = {
    "plain": Mail(ANSWERED),
    "upper case": Mail(ANSWERED, "APPROVE", sender="Carol@Example.ORG", to="{upper}"),
    "name": Mail(ANSWERED, sender='"Carol (Ops), née X" <carol@example.org>'.replace("é", "e")),
    "encoded name": Mail(ANSWERED, sender="=?utf-8?b?Q8OkcsO2bA==?= <carol@example.org>"),
    "subdomain that signs": Mail(
        ANSWERED, confirmed=CONFIRMED.replace("header.d=", "header.d=news.mail.")
    ),
    "identity that signs": Mail(ANSWERED, confirmed=CONFIRMED.replace("header.d=", "header.i=@")),
    "aligned envelope": Mail(
        ANSWERED,
        confirmed=f"{AR} {SERVER} 1; dkim=none;\r\n\tspf=pass smtp.mailfrom=b@bounce.example.org",
    ),
    "comments and quotes": Mail(
        ANSWERED,
        confirmed=f'{AR} {SERVER}; dkim=pass (2048-bit (rsa) key; "ok") reason="good; key"'
        ' header.d=example.org header.b="a+/="; dmarc=pass (p=none) header.from=example.org',
    ),
    "said to be no program": Mail(
        ANSWERED, headers=("Auto-Submitted: no", "X-Auto-Response-Suppress: none")
    ),
    "other recipients": Mail(ANSWERED, to="dave@example.org, {signed}"),
    "top": Mail(ANSWERED, f"approve\r\n\r\n{QUOTE}\r\n> deny\r\n"),
    "bottom": Mail(ANSWERED, f"{QUOTE}\r\n> Deploy?\r\n> deny\r\n\r\napprove\r\n"),
    "above Outlook": Mail(ANSWERED, f"approve\r\n\r\n{'_' * 32}\r\n{OUTLOOK}"),
    "signature": Mail(ANSWERED, "approve\r\n\r\nBest regards\r\nCarol"),
    "telephone": Mail(ANSWERED, "Approve\r\n\r\nSent from my iPhone"),
    "HTML with hidden text": Mail(
        ANSWERED,
        "<div style='overflow: hidden'>approve</div><p style='font-size:0'>not</p>",
        kind="text/html",
    ),
    "HTML": Mail(ANSWERED, "<div>app<b>rove</b></div><blockquote>x</blockquote>", kind="text/html"),
    "alternative": Mail(
        ANSWERED,
        _parts("Content-Type: text/plain\r\n\r\napprove", "Content-Type: text/html\r\n\r\n<p>deny"),
        kind='multipart/alternative; boundary="b"',
    ),
    "unknown charset": Mail(ANSWERED, kind="text/plain; charset=x-klingon"),
    "codec that is no charset": Mail(ANSWERED, kind="text/plain; charset=undefined"),
    "wrong charset": Mail(ANSWERED, "approve\r\n-- \r\n\udcff\udcfe"),
    "base64": Mail(
        ANSWERED,
        base64.b64encode(b"approve").decode(),
        headers=("Content-Transfer-Encoding: base64",),
    ),
    "huge": Mail(ANSWERED, f"approve\r\n\r\n{QUOTE}\r\n" + "> x\r\n" * 700_000),
}
"""Mails that approve."""
