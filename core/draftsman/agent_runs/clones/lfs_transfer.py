"""Transfer of contents of Git LFS between a source and the store of its mirror.

From a URL by the batch API with the transfer `basic`, over the client for outbound calls: `git lfs`
would not keep to its egress policy, and both the repository and the server name hosts. From a local
repository as files.

The API is that of docs/api/batch.md and docs/api/basic-transfers.md of Git LFS.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.clones.git import git_failure
from draftsman.agent_runs.clones.lfs_filter import ContentWriter, LfsObject, store_content
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.errors import Failure
from draftsman.outbound.http_client import (
    HttpCall,
    HttpClient,
    OutboundResponse,
    origin,
    parse_url,
    retry_after,
)
from draftsman.outbound.timeouts import Timeouts

MEDIA_TYPE: Final = "application/vnd.git-lfs+json"
BATCH: Final = 100
"""Objects of a call of the API: the limit of some servers."""
TIMEOUTS: Final = Timeouts(call=1800, connect=10, idle=60)
MAX_UPLOAD: Final = 512 * 1024 * 1024
"""Maximum bytes of a content that is uploaded."""
MOVED: Final = (301, 302, 307, 308)
"""Statuses of the former address of a repository."""
MAX_ANSWER: Final = 10 * 1024 * 1024
CODE: Final = "lfs"
"""Code of the failure of a transfer."""


def can_transfer(source: RepoSource) -> bool:
    """Return whether contents of the source can be read: not over git's own protocol."""
    return not source.location.startswith("git://")


async def download(
    source: RepoSource, store: Path, objects: Iterable[LfsObject]
) -> list[LfsObject]:
    """Fetch the objects that a store does not have; return those that the source has neither.

    Raises Failure `lfs`.
    """
    wanted = [item for item in dict.fromkeys(objects) if not _is_used_again(item, store)]
    if source.is_local:
        return await asyncio.to_thread(_copy_all, Path(source.location), store, wanted)
    if not wanted:
        return []
    server = await _Server.of(source, "download")
    missing = []
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        answers = await server.batch("download", batch)
        for item in batch:
            action = _fields(answers.get(item.oid), "actions", "download")
            if action:
                await server.get(action, store, item)
            else:
                missing.append(item)
    return missing


async def upload(source: RepoSource, store: Path, objects: Iterable[LfsObject]) -> None:
    """Send the objects of a store that the source does not have; raises Failure `lfs`."""
    wanted = [item for item in dict.fromkeys(objects) if item.path(store).is_file()]
    if source.is_local:
        for item in wanted:
            await _put_file(source, store, item)
        return
    server = await _Server.of(source, "upload")
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        answers = await server.batch("upload", batch)
        for item in batch:
            await server.put(answers.get(item.oid), store, item)


@dataclass(frozen=True, slots=True)
class _Server:
    """The LFS server of a repository; `headers` have the login for its origin."""

    source: RepoSource
    url: str
    headers: Mapping[str, str]

    @classmethod
    async def of(cls, source: RepoSource, operation: str) -> _Server:
        if source.is_ssh:
            told = await source.run_ssh("git-lfs-authenticate", operation)
            answer = _fields(_parsed(told, source.location))
            headers = {str(name): str(value) for name, value in _fields(answer, "header").items()}
            return cls(source, str(answer.get("href") or ""), headers)
        headers = {}
        if source.login is not None:
            login = await source.login()
            value = base64.b64encode(f"{login.user}:{login.token}".encode()).decode()
            headers["authorization"] = f"Basic {value}"
        return cls(source, _url(source.location), headers)

    async def batch(
        self, operation: str, objects: Sequence[LfsObject]
    ) -> dict[str, Mapping[str, Any]]:
        """Return the answer about each object, by its id: its `actions`, or an `error`."""
        body = {
            "operation": operation,
            "transfers": ["basic"],
            "hash_algo": "sha256",
            "objects": [{"oid": item.oid, "size": item.size} for item in objects],
        }
        media = {"accept": MEDIA_TYPE, "content-type": MEDIA_TYPE}
        call = HttpCall("POST", f"{self.url}/objects/batch", {**self.headers, **media}, _json(body))
        async with self._client(MAX_ANSWER).stream(call, TIMEOUTS) as response:
            if response.status in MOVED and (moved := await self._moved()) is not None:
                return await moved.batch(operation, objects)
            await _check(response)
            data = await response.read()
        listed = _parsed(data, response.where).get("objects")
        items = listed if isinstance(listed, list) else []
        return {str(item.get("oid")): item for item in map(_fields, items)}

    async def _moved(self) -> _Server | None:
        """Return the server of a repository that its forge has moved; None if it has not."""
        location = None if self.source.locate is None else await self.source.locate()
        url = self.url if location is None else _url(location)
        return None if url == self.url else replace(self, url=url)

    async def get(self, action: Mapping[str, Any], store: Path, item: LfsObject) -> None:
        """Download an object to the store; its SHA-256 is checked."""
        call = HttpCall("GET", str(action.get("href")), self._headers_of(action))
        async with self._client(item.size + 1).stream(call, TIMEOUTS, redirects=3) as response:
            await _check(response)
            writer = ContentWriter(store)
            async for chunk in response.chunks():
                writer.write(chunk)
        if writer.close() != item:
            raise _failure(f"{response.where}: another content than {item.oid[:12]}")

    async def put(self, answer: object, store: Path, item: LfsObject) -> None:
        """Upload an object, unless the server has it."""
        if error := _fields(answer, "error"):
            raise _failure(f"{self.url}: {item.oid[:12]} is refused: {error.get('message')}")
        action = _fields(answer, "actions", "upload")
        if not action:
            return
        if item.size > MAX_UPLOAD:
            text = f"{item.oid[:12]} has {item.size:,} bytes; at most {MAX_UPLOAD:,} are uploaded"
            raise _failure(text, declared="PERMANENT")
        data = await asyncio.to_thread(item.path(store).read_bytes)
        media = {"content-type": "application/octet-stream"}
        headers = media | self._headers_of(action)
        await self._send(HttpCall("PUT", str(action.get("href")), headers, data))
        if check := _fields(answer, "actions", "verify"):
            media = {"accept": MEDIA_TYPE, "content-type": MEDIA_TYPE}
            body = _json({"oid": item.oid, "size": item.size})
            headers = media | self._headers_of(check)
            await self._send(HttpCall("POST", str(check.get("href")), headers, body))

    async def _send(self, call: HttpCall) -> None:
        async with self._client(MAX_ANSWER).stream(call, TIMEOUTS) as response:
            await _check(response)

    def _client(self, limit: int) -> HttpClient:
        settings = self.source.http.model_copy(update={"max_body": limit})
        return HttpClient(settings, resolve=self.source.resolve)

    def _headers_of(self, action: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of an action; the login only for the server itself."""
        headers = _fields(action, "header")
        given = {str(name).lower(): str(value) for name, value in headers.items()}
        if origin(parse_url(str(action.get("href")))) != origin(parse_url(self.url)):
            return given
        return {**self.headers, **given}


def _url(location: str) -> str:
    return location.removesuffix(".git") + ".git/info/lfs"


async def _check(response: OutboundResponse) -> None:
    if not 200 <= response.status < 300:
        text = (await response.beginning(300)).decode(errors="replace")
        failure = _failure(f"{response.where}: {response.status} {' '.join(text.split())}")
        failure.http_status = response.status
        failure.retry_after = retry_after(response.headers)
        raise failure


def _is_used_again(item: LfsObject, store: Path) -> bool:
    """Return whether a store has an object, which it then keeps."""
    with suppress(FileNotFoundError):
        os.utime(item.path(store))
        return True
    return False


def _copy_all(repository: Path, store: Path, wanted: Sequence[LfsObject]) -> list[LfsObject]:
    """Copy objects of a local repository; return those that it does not have."""
    folders = (repository / ".git" / "lfs", repository / "lfs")
    return [item for item in wanted if not any(_copy(item, folder, store) for folder in folders)]


def _copy(item: LfsObject, folder: Path, store: Path) -> bool:
    """Copy an object of another store; a file with another content is none."""
    try:
        descriptor = os.open(item.path(folder), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        content, _ = store_content(store, iter(lambda: file.read(1 << 20), b""))
    return content == item


async def _put_file(source: RepoSource, store: Path, item: LfsObject) -> None:
    """Copy an object to a local repository, as its owner."""
    data = await asyncio.to_thread(item.path(store).read_bytes)
    await source.add_file(str(item.path(Path("lfs"))), data)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _parsed(data: bytes, where: str) -> Mapping[str, Any]:
    """Return the object of an answer of the API."""
    try:
        return _fields(json.loads(data))
    except ValueError:
        raise _failure(f"{where}: not an answer of the API") from None


def _fields(value: object, *names: str) -> Mapping[str, Any]:
    """Return the object at a path of an answer; empty for anything else."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _failure(text: str, declared: str | None = None) -> Failure:
    failure = git_failure(f"LFS: {text}", CODE)
    failure.declared = declared
    return failure
