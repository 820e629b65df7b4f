"""Password of the embedded server: random, in a file that only the owner of the data can read.

The server gets a SCRAM verifier first; then the password is written to the file. If the process is
killed in between, the file is missing and the next start sets another password. The file has
libpq's format, so that the URL has the path of the file instead of the password.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from draftsman.database.embedded.layout import ROLE, ClusterLayout
from draftsman.errors import CommandHint, EmbeddedServerError

ENTROPY: Final = 32
"""Random bytes of a password."""
ITERATIONS: Final = 4096
"""PostgreSQL's default for `scram_iterations`."""
SET_PASSWORD: Final = Path(__file__).with_name("set_password.sql")
_PREFIX: Final = f"*:*:*:{ROLE}:"


def generate() -> str:
    """Return a new password that needs no escaping in URLs and password files."""
    return secrets.token_urlsafe(ENTROPY)


def statement(password: str) -> str:
    """Return the statement, on one line, that sets the password of the server's role.

    It has only the verifier (RFC 5803), with which a client cannot log in.
    """
    return SET_PASSWORD.read_text().format(verifier=_verifier(password, secrets.token_bytes(16)))


def read(layout: ClusterLayout) -> str | None:
    """Return the password, or None without a complete and private file of this user."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        descriptor = os.open(layout.password_file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            status = os.fstat(descriptor)
            private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077
            if private and status.st_uid == os.geteuid():
                line = file.readline().removesuffix("\n")
                return line.removeprefix(_PREFIX) or None if line.startswith(_PREFIX) else None
    return None


def required(layout: ClusterLayout) -> str:
    """Return the password; raises EmbeddedServerError if it is not set."""
    if (password := read(layout)) is None:
        raise EmbeddedServerError(
            f"{layout.password_file} has no password",
            hint=CommandHint("db start", lead="to set it, run"),
        )
    return password


def write(layout: ClusterLayout, password: str) -> None:
    """Write the password file atomically and durably."""
    part = layout.password_file.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{_PREFIX}{password}\n")
        file.flush()
        os.fsync(descriptor)
    part.replace(layout.password_file)
    folder = os.open(layout.cluster, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _verifier(password: str, salt: bytes) -> str:
    """Return the SCRAM verifier (RFC 5802) for `pg_authid.rolpassword`."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${ITERATIONS}:{encoded[0]}${encoded[1]}:{encoded[2]}"
