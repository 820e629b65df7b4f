"""A small, strict IMAP server (RFC 3501), with the commands that draftsman sends and no others.

A command that is malformed, unknown, or not allowed in the state of its connection gets BAD, and
ends up in `violations`, which tests expect to be empty.
"""

from __future__ import annotations

import re
import socketserver
import threading
from dataclasses import dataclass, field
from typing import Final

LOGIN: Final = re.compile(rb'LOGIN "?([^" ]+)"? "?([^" ]+)"?')  # 6.2.3
SELECT: Final = re.compile(rb'SELECT "?INBOX"?')  # 6.3.1
SEARCH: Final = re.compile(
    rb'UID SEARCH (?:UNSEEN UNDELETED|UNDELETED HEADER "?([\w-]+)"? "?([^" ]+)"?)'
)  # 6.4.4
FLAGS: Final = re.compile(rb"UID FETCH ([0-9]+) \(?FLAGS\)?")  # 6.4.5
FETCH: Final = re.compile(rb"UID FETCH ([0-9,:]+) \(BODY\.PEEK\[\]<0\.([0-9]+)>\)")  # 6.4.5
STORE: Final = re.compile(rb"UID STORE ([0-9,:]+) \+FLAGS\.SILENT \((\\Seen|\\Deleted)\)")  # 6.4.6
EXPUNGE: Final = re.compile(rb"UID EXPUNGE ([0-9,:]+)")  # 2.1 of RFC 4315


@dataclass
class StoredMail:
    """A mail of the mailbox."""

    raw: bytes
    flags: set[bytes] = field(default_factory=set)


class ImapServer:
    """A mailbox of one account, on a port of this machine."""

    def __init__(self, user: str, password: str) -> None:
        self.login = (user.encode(), password.encode())
        self.mails: dict[int, StoredMail] = {}
        self.validity = 7
        self.violations: list[str] = []
        self.refused = b""
        """A word of commands that the server refuses."""
        self._next_uid = 1
        self._lock = threading.Lock()
        self._server = _Tcp(("127.0.0.1", 0), _Session)
        self._server.mailbox = self
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def __enter__(self) -> ImapServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def deliver(self, raw: bytes) -> int:
        """Store a mail; return its UID."""
        with self._lock:
            uid = self._next_uid
            self._next_uid += 1
            self.mails[uid] = StoredMail(raw)
        return uid

    def renumber(self) -> None:
        """Give all mails other UIDs, as after the loss of an index (2.3.1.1)."""
        with self._lock:
            self.validity += 1
            self.mails = {uid + 1: mail for uid, mail in self.mails.items()}
            self._next_uid += 1

    def unseen(self) -> list[int]:
        """Return the UIDs of the unseen mails."""
        return [uid for uid, mail in self.mails.items() if rb"\Seen" not in mail.flags]

    def number(self, uid: int) -> int:
        """Return the number of a mail in the mailbox."""
        return [*self.mails].index(uid) + 1

    def having(self, field: bytes, value: bytes) -> list[int]:
        """Return the UIDs of the mails with a header field that contains a value."""
        line = re.compile(rb"(?im)^" + re.escape(field) + rb":.*" + re.escape(value))
        return [uid for uid, mail in self.mails.items() if line.search(mail.raw)]


class _Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    mailbox: ImapServer


class _Session(socketserver.StreamRequestHandler):
    server: _Tcp

    def handle(self) -> None:
        """Greet, and answer each command."""
        self._state = "not authenticated"
        self._send(b"* OK IMAP4rev1 ready")
        while line := self.rfile.readline():
            tag, _, command = line.rstrip(b"\r\n").partition(b" ")
            done = self._done(command)
            self._send(tag + b" " + done)
            if command == b"LOGOUT":
                return

    def _done(self, command: bytes) -> bytes:
        box = self.server.mailbox
        if box.refused and box.refused in command:
            return b"NO [NOPERM] not permitted"
        if command == b"CAPABILITY":  # 6.1.1
            self._send(b"* CAPABILITY IMAP4rev1 UIDPLUS")
        elif command == b"LOGOUT":  # 6.1.3
            self._send(b"* BYE")
        elif self._state == "not authenticated" and (match := LOGIN.fullmatch(command)):
            if match.groups() != box.login:
                return b"NO [AUTHENTICATIONFAILED] wrong user or password"
            self._state = "authenticated"
        elif self._state != "not authenticated" and SELECT.fullmatch(command):
            self._state = "selected"
            self._send(b"* %d EXISTS" % len(box.mails))
            self._send(b"* FLAGS (\\Seen \\Deleted)")
            self._send(b"* OK [UIDVALIDITY %d] valid" % box.validity)
            return b"OK [READ-WRITE] selected"
        elif self._state != "selected" or not self._done_in_mailbox(command):
            box.violations.append(f"{self._state}: {command!r}")
            return b"BAD unknown command"
        return b"OK done"

    def _done_in_mailbox(self, command: bytes) -> bool:
        """Execute a command on mails; return whether it is known."""
        box = self.server.mailbox
        if match := SEARCH.fullmatch(command):
            uids = box.unseen() if match[1] is None else box.having(match[1], match[2])
            self._send(b"* SEARCH" + b"".join(b" %d" % uid for uid in uids))
        elif match := FLAGS.fullmatch(command):
            uid = int(match[1])
            flags = b" ".join(sorted(box.mails[uid].flags))
            self._send(b"* %d FETCH (UID %d FLAGS (%b))" % (box.number(uid), uid, flags))
        elif match := EXPUNGE.fullmatch(command):
            for uid in _uids(match[1]) & {*box.mails}:
                if rb"\Deleted" in box.mails[uid].flags:
                    self._send(b"* %d EXPUNGE" % box.number(uid))
                    del box.mails[uid]
        elif match := FETCH.fullmatch(command):
            for uid in sorted(_uids(match[1]) & {*box.mails}):
                raw = box.mails[uid].raw[: int(match[2])]
                head = b"* %d FETCH (UID %d BODY[]<0> {%d}\r\n" % (box.number(uid), uid, len(raw))
                self._send(head + raw + b")")
        elif match := STORE.fullmatch(command):
            for uid in _uids(match[1]) & {*box.mails}:
                box.mails[uid].flags.add(match[2])
        else:
            return False
        return True

    def _send(self, line: bytes) -> None:
        self.wfile.write(line + b"\r\n")


def _uids(text: bytes) -> set[int]:
    uids: set[int] = set()
    for item in text.split(b","):
        first, _, last = item.partition(b":")
        uids |= {*range(int(first), int(last or first) + 1)}
    return uids
