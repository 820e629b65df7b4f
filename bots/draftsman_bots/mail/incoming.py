"""Mails that arrive: their headers, and what their author wrote. Pure."""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.parser import BytesHeaderParser
from email.utils import getaddresses
from itertools import takewhile
from typing import Final

from bs4 import BeautifulSoup, Tag
from mailparser_reply import EmailMessage

from draftsman.formats.hidden_text import HIDING
from draftsman.formats.invisible import line_ends
from draftsman.text import first_line

MAX_TEXT: Final = 20_000
"""Characters of a body that are read."""
MAX_LINE: Final = 200
"""Characters of a line that the reply parser reads: its patterns take quadratic time."""
LANGUAGES: Final = ("en", "de", "fr", "es", "it", "nl")
"""Languages of the lines before a quote, such as `On Monday, Anna wrote:`."""
UNQUOTED: Final = ("blockquote", "head", "script", "style")
LINES: Final = ("br", "div", "hr", "li", "p", "tr")
_SENDER: Final = re.compile(
    r"(?:(?:\"[^\"\\]{0,500}\"|[^\"<>@,:;\\]{0,500})\s*<)?"
    r"([a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)>?"
)
_ID: Final = re.compile(r"<[!-;=?-~]{1,250}>")
_AUTOMATIC: Final = {
    "auto-submitted": r"(?!no\b).",
    "precedence": r"bulk|junk|list|auto_reply",
    "x-auto-response-suppress": r"(?!none\b).",
    "content-type": r"multipart/report\b",
    "return-path": r"<\s*>",
    **dict.fromkeys(("list-id", "list-post", "list-unsubscribe", "x-autoreply", "x-loop"), ""),
}
"""Header fields of mails that no person wrote to us, with the pattern of their value."""
_RECIPIENTS: Final = ("x-original-to", "delivered-to", "to", "cc")
_RESULTS: Final = "authentication-results"


@dataclass(frozen=True, slots=True)
class IncomingMail:
    """The headers of a mail."""

    key: str
    """Key of the mail, the same each time that it is delivered: of its author, `Date` and body.

    Signatures of DKIM cover these, and seldom the Message-ID, with which a mail could be repeated.
    """
    id: str
    """Its Message-ID; "" if that is missing or malformed."""
    sender: str
    """The only address of its only field `From`, in lower case; "" for any other `From`."""
    recipients: frozenset[str]
    subject: str
    automatic: str
    """The field that shows that no person wrote it to us, such as `list-id`; "": a person did."""
    results: tuple[str, ...]
    """The fields `Authentication-Results` above the fields of the sender, from the top."""


def read_headers(raw: bytes) -> IncomingMail:
    """Parse the headers of a mail, of which any may be missing, repeated or malformed."""
    headers = BytesHeaderParser().parsebytes(raw)

    def values(name: str) -> list[str]:
        return [" ".join(str(value).split()) for value in headers.get_all(name, ())]

    (sender, *others), (id, *_) = values("from") or [""], values("message-id") or [""]
    match = _SENDER.fullmatch(sender.lower()) if not others else None
    author = match[1] if match else ""
    date = "".join(values("date")[:1]).encode("utf-8", "replace")
    body = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)[-1]
    names = [name.lower() for name in headers]
    above = takewhile(lambda name: name not in ("from", "dkim-signature"), names)
    programs = (
        name
        for name, pattern in _AUTOMATIC.items()
        if any(re.match(pattern, value.lower()) for value in values(name))
    )
    return IncomingMail(
        key=f"mail:{hashlib.sha256(bytes(1).join((author.encode(), date, body))).hexdigest()[:32]}",
        id=id if _ID.fullmatch(id) else "",
        sender=author,
        recipients=frozenset(
            address.lower() for name in _RECIPIENTS for _, address in getaddresses(values(name))
        ),
        subject=_decoded("".join(values("subject")[:1])),
        automatic=next(programs, ""),
        results=tuple(values(_RESULTS)[: [*above].count(_RESULTS)]),
    )


def read_text(raw: bytes) -> str:
    """Return what the author wrote, without quotes and the signature; "" for nothing."""
    try:
        part = message_from_bytes(raw, policy=policy.default).get_body(("plain", "html"))
        content = part.get_payload(decode=True) if part is not None else None
    except Exception:  # the parser of the standard library raises anything for a broken structure
        return ""
    if part is None or not isinstance(content, bytes):
        return ""
    try:
        body = content.decode(part.get_content_charset("utf-8"), "replace")
    except (LookupError, UnicodeError):  # no charset
        body = content.decode("utf-8", "replace")
    if part.get_content_subtype() == "html":
        body = _text_of_html(body)
    reply = _reply(line_ends(body)[:MAX_TEXT].strip())
    return "\n".join(line for line in reply.split("\n") if not line.startswith(">")).strip()


def _reply(body: str) -> str:
    """Return the text above the quote, or below it in a mail that begins with one.

    The parser sees the beginning of each line only, which is where quotes and signatures show.
    """
    lines = re.sub(r"\n\s*\n", "\n\n", body).split("\n")
    beginnings = "\n".join(line[:MAX_LINE] for line in lines)
    first = EmailMessage(beginnings, list(LANGUAGES), keep_hyphen_lists=True).read().replies[0]
    if first.headers:
        quoted = [index for index, line in enumerate(lines) if line.startswith(">")]
        return _reply("\n".join(lines[quoted[-1] + 1 :]).strip()) if quoted else ""
    return "\n".join(lines[: first.body.count("\n") + 1]) if first.body else ""


def _text_of_html(html: str) -> str:
    soup = BeautifulSoup(html, "html.parser")
    for tag in [*soup(UNQUOTED), *soup(_is_hidden)]:
        tag.decompose()
    for tag in soup(LINES):
        tag.insert_before("\n")
    return soup.get_text()


def _is_hidden(tag: Tag) -> bool:
    attributes = "".join(f' {name}="{value}"' for name, value in tag.attrs.items())
    return HIDING.search(attributes) is not None


def _decoded(subject: str) -> str:
    with contextlib.suppress(ValueError, LookupError):  # an unknown charset
        subject = str(make_header(decode_header(subject)))
    return first_line(subject, 300)
