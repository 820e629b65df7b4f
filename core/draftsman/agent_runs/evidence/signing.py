"""Ed25519 keys that sign evidence: the private key of a worker, and public keys of workers.

DATA/keys/evidence.key    the private key, PEM, which only its owner can read
DATA/keys/<key id>.pub    its public key; those of former keys stay, to verify old statements
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from draftsman.errors import ConfigError

KEY_FILE: Final = "evidence.key"
MAX_KEY_BYTES: Final = 100_000


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key; `id` is the SHA-256 of its DER form, in hex."""

    id: str
    key: Ed25519PublicKey

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether the signature of the message is by the private key of this key."""
        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key; it is in memory only while it signs, and never logged or stored."""

    public: PublicKey
    key: Ed25519PrivateKey

    def __repr__(self) -> str:
        return f"SigningKey({self.public.id[:16]})"

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return self.key.sign(message)


def keys_folder(data_dir: Path) -> Path:
    """Return the folder of the keys of a data directory."""
    return data_dir / "keys"


def signing_key(data_dir: Path, configured: Path | None) -> SigningKey:
    """Return the private key of this installation, made at its first use.

    A configured file must exist. Raises ConfigError for a file that others can read, or that has
    no Ed25519 key.
    """
    path = configured or keys_folder(data_dir) / KEY_FILE
    if configured is None and not path.exists():
        _create(path)
    key = _read_private(path)
    signing = SigningKey(_public(key.public_key()), key)
    public = keys_folder(data_dir) / f"{signing.public.id[:16]}.pub"
    if not public.exists():
        _write(public, _pem(signing.public), 0o644)
    return signing


def trusted_keys(data_dir: Path, other_files: tuple[Path, ...]) -> Iterator[PublicKey]:
    """Yield the public keys of this installation, then those of these files."""
    yield from map(read_public, sorted(keys_folder(data_dir).glob("*.pub")))
    yield from map(read_public, other_files)


def read_public(path: Path) -> PublicKey:
    """Return the public key of a PEM file; raises ConfigError."""
    try:
        key = load_pem_public_key(_read(path))
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"{path}: not an Ed25519 public key in PEM form")
    return _public(key)


def _create(path: Path) -> None:
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    _write(path, pem, 0o600)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a new file with this mode; a file that another process wrote meanwhile stays."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; the worker writes its key there") from None


def _read_private(path: Path) -> Ed25519PrivateKey:
    data = _read(path, private=True)
    try:
        key = load_pem_private_key(data, password=None)
    except (TypeError, ValueError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path}: not an Ed25519 private key in PEM form without a passphrase")
    return key


def _read(path: Path, *, private: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            mode = stat.S_IMODE(status.st_mode)
            # a mounted secret belongs to root, and its group is that of the worker
            mounted = status.st_uid != os.geteuid()
            if private and mode & (0o037 if mounted else 0o077):
                raise ConfigError(
                    f"{path}: other users have access to the private key ({mode:04o});"
                    f" run: chmod 600 {path}"
                )
            return file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def _public(key: Ed25519PublicKey) -> PublicKey:
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return PublicKey(hashlib.sha256(der).hexdigest(), key)


def _pem(public: PublicKey) -> bytes:
    return public.key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
