"""Keys that sign evidence."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from draftsman.agent_runs.evidence.signing import (
    keys_folder,
    read_public,
    signing_key,
    trusted_keys,
)
from draftsman.errors import ConfigError


def private_pem(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_workers_that_start_at_once_make_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: signing_key(tmp_path, None), range(16)))
    assert len({key.public.id for key in keys}) == 1
    assert {path.name for path in keys_folder(tmp_path).iterdir()} == {
        "evidence.key",
        f"{keys[0].public.id[:16]}.pub",
    }
    assert "PRIVATE" not in repr(keys[0])
    [public] = trusted_keys(tmp_path, ())
    signature = keys[3].sign(b"text")
    assert public.verifies(signature, b"text")
    assert not public.verifies(signature, b"test")


def test_a_new_key_leaves_the_public_key_of_the_former(tmp_path: Path) -> None:
    former = signing_key(tmp_path, None)
    (keys_folder(tmp_path) / "evidence.key").unlink()
    current = signing_key(tmp_path, None)
    assert former.public.id != current.public.id
    assert {key.id for key in trusted_keys(tmp_path, ())} == {former.public.id, current.public.id}


def test_a_mounted_key_may_be_read_by_the_group_of_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mounted.key"
    path.write_bytes(private_pem(Ed25519PrivateKey.generate()))
    owner = path.stat().st_uid
    path.chmod(0o440)
    with pytest.raises(ConfigError, match="chmod 600"):
        signing_key(tmp_path, path)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert signing_key(tmp_path, path).public.id
    path.chmod(0o444)
    with pytest.raises(ConfigError, match="chmod 600"):
        signing_key(tmp_path, path)


def test_a_configured_key_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "own.key"
    with pytest.raises(ConfigError, match=r"own\.key: No such file"):
        signing_key(tmp_path, path)
    path.write_bytes(private_pem(X25519PrivateKey.generate()))
    with pytest.raises(ConfigError, match="chmod 600"):
        signing_key(tmp_path, path)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="not an Ed25519 private key"):
        signing_key(tmp_path, path)
    path.write_bytes(private_pem(Ed25519PrivateKey.generate()))
    public = keys_folder(tmp_path) / f"{signing_key(tmp_path, path).public.id[:16]}.pub"
    assert read_public(public).id.startswith(public.stem)
    with pytest.raises(ConfigError, match="not an Ed25519 public key"):
        read_public(path)
