"""The mailbox, read by IMAP (RFC 3501).

Unseen mail is read, and marked as seen once it was processed. UIDs name mails only as long as the
UIDVALIDITY of the folder stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError

from draftsman.errors import Failure
from draftsman_bots.mail.settings import MailServer
from draftsman_bots.process.credentials import read_optional

BATCH: Final = 20
"""Mails in a round."""
CONTENT: Final = b"BODY[]<0>"
MAX_BYTES: Final = 1024 * 1024
"""Bytes of a mail that are read: attachments are not used."""
TIMEOUT: Final = 30.0


class Mailbox:
    """The inbox of an account; its methods block, and raise Failure."""

    def __init__(self, server: MailServer) -> None:
        """Read the password; raises ConfigError."""
        self._server = server
        self._password = read_optional("mail.imap", "password", server.password)

    def unseen(self) -> tuple[int, dict[int, bytes]]:
        """Return the UIDVALIDITY, and the oldest unseen mails by UID."""
        with self._open() as (client, validity):
            uids = sorted(client.search("UNSEEN UNDELETED"))[:BATCH]
            return validity, _contents(client, uids)

    def mark_seen(self, validity: int, uids: Sequence[int]) -> None:
        """Mark mails as seen, unless their UIDs are void: they are read again then."""
        with self._open() as (client, current):
            if current == validity:
                client.add_flags(uids, rb"\Seen", silent=True)

    def find(self, field: str, value: str) -> dict[int, bytes]:
        """Return the mails with a value in a header field, by UID; they stay unseen."""
        with self._open() as (client, _):
            uids = client.search(["UNDELETED", "HEADER", field, value])[:BATCH]
            return _contents(client, uids)

    def flags(self, uid: int) -> Sequence[bytes]:
        """Return the flags of a mail."""
        with self._open() as (client, _):
            return tuple(client.get_flags([uid]).get(uid, ()))

    def delete(self, uid: int) -> None:
        """Delete a mail."""
        with self._open() as (client, _):
            client.delete_messages([uid], silent=True)
            # only this mail, where the server can: other programs may have marked others
            client.expunge([uid] if client.has_capability("UIDPLUS") else None)

    @contextmanager
    def _open(self) -> Iterator[tuple[IMAPClient, int]]:
        server = self._server
        try:
            with IMAPClient(server.host, server.port, ssl=server.has_tls, timeout=TIMEOUT) as imap:
                if server.has_starttls:
                    imap.starttls()
                if server.user is not None:
                    imap.login(server.user, self._password)
                yield imap, imap.select_folder("INBOX")[b"UIDVALIDITY"]
        except (IMAPClientError, OSError) as error:
            raise Failure(str(error), origin="imap") from None


def _contents(client: IMAPClient, uids: Sequence[int]) -> dict[int, bytes]:
    """Return mails by UID, which stay unseen."""
    mails = client.fetch(uids, [f"BODY.PEEK[]<0.{MAX_BYTES}>"])
    return {uid: mails[uid][CONTENT] for uid in uids if CONTENT in mails[uid]}
