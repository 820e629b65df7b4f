"""The server of a fake forge: routes of its API, and git's own backend, both behind the token."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from aiohttp import web

from draftsman_testing.fake.faults import Fault, respond
from draftsman_testing.fake.server import FakeServer
from draftsman_testing.forges.world import Call, ForgeWorld

MAX_BODY: Final = 2**26
Operation = Callable[["Request"], Any]


def is_below(path: str, parent: str) -> bool:
    """Return whether a path is that of a repository, or below it, in any case."""
    path = path.casefold()
    parent = parent.casefold()
    return path == parent or path.startswith(f"{parent}/")


class Refused(Exception):
    """A response of an error."""

    def __init__(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.body = body if isinstance(body, dict) else {"message": body}
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the API; `parts` are the groups of the route."""

    http: web.Request
    parts: tuple[str, ...]
    query: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A list, of which the server returns a page; or all of it, as a `whole`."""

    entries: list[Any]
    key: str | None = None
    whole: bool = False


class FakeForge(FakeServer[Call], ABC):
    """A forge with a repository; subclasses have the API of a kind."""

    kind: ClassVar[str]
    api: ClassVar[str]
    """Path of the API."""
    per_page: ClassVar[str] = "per_page"
    page_size: ClassVar[int] = 30
    """Entries of a page without the parameter."""
    links: ClassVar[bool] = True
    by_id: ClassVar[str] = "/repositories/"
    """Path of repositories by their id, below the API."""
    tags: ClassVar[bool] = True
    """Whether responses have an ETag."""

    def __init__(self, folder: Path) -> None:
        self.world = ForgeWorld(folder=folder)
        super().__init__(self.world)
        self.broken: list[Exception] = []

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.start([web.route("*", "/{path:.*}", self._serve)], MAX_BODY)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        await self.stop()
        if self.broken:
            raise ExceptionGroup("the fake forge itself is broken", self.broken)

    @abstractmethod
    def routes(self) -> list[tuple[str, str, str, Operation]]:
        """Return method, pattern below the API, name and function of each operation."""

    @abstractmethod
    def authorize(self, request: web.Request, operation: str) -> None:
        """Raise Refused for a call without a valid token."""

    @abstractmethod
    def limited(self, name: str) -> Refused:
        """Return the response of a rate limit, `primary` or `secondary`."""

    @abstractmethod
    def path_of(self, project: str) -> str:
        """Return the path of a repository, below the API."""

    @abstractmethod
    def moved(self, request: web.Request, rest: str) -> web.Response:
        """Return the response to a call at a former name, with the `rest` of its path and query."""

    def graphql(self, call: Request) -> Any:
        """Execute a query of GraphQL, which only GitHub has."""
        raise Refused(404, "Not Found")

    def settings(self) -> dict[str, Any]:
        """Return the table of the configuration, with the token in FORGE_TOKEN."""
        return {"kind": self.kind, "url": self.world.base, "token": {"env": "FORGE_TOKEN"}}

    @property
    def url(self) -> str:
        """URL of the repository."""
        return f"{self.world.base}/{self.world.project}.git"

    def publish(self, source: Path) -> None:
        """Copy a repository to the forge."""
        self.world.repository.parent.mkdir(parents=True)
        shutil.copytree(source / ".git", self.world.repository)
        with (self.world.repository / "config").open("a") as config:
            config.write("[core]\n\tbare = true\n[http]\n\treceivepack = true\n")

    def operations(self) -> list[str]:
        """Return the names of the calls so far."""
        return [call.operation for call in self.calls]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if path.startswith("/logs/"):
            return self._log(request, int(path.rpartition("/")[2]))
        if path.startswith("/lfs/"):
            return await self.world.lfs.transfer(request)
        if path == "/api/graphql":
            return await self._call(request, "graphql", self.graphql, ())
        if not path.startswith(self.api):
            return await self._git(request)
        now = self.path_of(self.world.project)
        path = path[len(self.api) :].replace(f"{self.by_id}{self.world.id}", now)
        if (fault := self._blocked(path)) is not None:
            return await respond(request, fault, self._never, self._refused)
        for former in self.world.former:
            if is_below(path, old := self.path_of(former)):
                name, _, _ = self._route(request.method, now + path[len(old) :])
                return await self._call(request, name, self._redirect, (old,))
        name, operation, parts = self._route(request.method, path)
        is_other = is_below(path, f"/{now.split('/')[1]}") and not is_below(path, now)
        return await self._call(request, name, self._unknown if is_other else operation, parts)

    def _route(self, method: str, path: str) -> tuple[str, Operation, tuple[str, ...]]:
        """Return name, function and the groups of the path of an operation."""
        for known, pattern, name, operation in self.routes():
            match = re.fullmatch(pattern, path)
            if match is not None and known == method:
                return name, operation, match.groups()
        return "unknown", self._unknown, ()

    def _unknown(self, call: Request) -> Any:
        raise Refused(404, "404 Not Found")

    def url_by_id(self, rest: str) -> str:
        """Return the URL of the repository by its id, which a rename does not change."""
        return f"{self.world.base}{self.api}{self.by_id}{self.world.id}{rest}"

    def _redirect(self, call: Request) -> web.Response:
        old = f"{self.api}{call.parts[0]}"
        return self.moved(call.http, call.http.rel_url.raw_path_qs.removeprefix(old))

    def _blocked(self, path: str) -> Fault | None:
        blocked = self.world.blocked.items()
        return next((fault for name, fault in blocked if is_below(path, self.path_of(name))), None)

    async def _never(self) -> web.Response:
        raise ValueError("a blocked repository has no operations")

    def _refused(self, fault: Fault) -> web.Response | None:
        """Return the response of a fault that is one of a forge."""
        if fault.name in ("primary", "secondary"):
            refused = self.limited(fault.name)
            return web.json_response(refused.body, status=refused.status, headers=refused.headers)
        if fault.name == "error":
            return web.json_response({"message": fault.text}, status=fault.status)
        return None

    def _log(self, request: web.Request, id: int) -> web.Response:
        """Serve a log at another host, which is never given a token."""
        if "Authorization" in request.headers:
            return web.Response(status=400, text="InvalidAuthenticationInfo")
        return web.Response(text=self.world.talk.logs[id])

    async def _call(
        self, request: web.Request, name: str, operation: Operation, parts: tuple[str, ...]
    ) -> web.Response:
        async def perform() -> web.Response:
            try:
                self.authorize(request, name)
                raw = await request.read()
                body = json.loads(raw) if raw else {}
                call = Request(request, parts, dict(request.query), body)
                result = self.world.faults.perform(name, body, partial(operation, call))
                response = self._response(request, result)
            except Refused as refused:
                response = web.json_response(
                    refused.body, status=refused.status, headers=refused.headers
                )
            except ConnectionError:  # the caller was killed
                raise
            except Exception as error:
                self.broken.append(error)
                raise
            self._record(request, name, response.status)
            return response

        def refuse(fault: Fault) -> web.Response | None:
            self._record(request, name, fault.status)
            return self._refused(fault)

        return await respond(request, self.world.faults.take(name), perform, refuse)

    def _record(self, request: web.Request, name: str, status: int) -> None:
        self.world.record(Call(name, request.method, str(request.rel_url), status))

    def _response(self, request: web.Request, result: Any) -> web.Response:
        if isinstance(result, web.Response):
            return result
        if not isinstance(result, Page):
            status = 201 if request.method == "POST" else 200
            return self._tagged(request, web.json_response(result, status=status))
        size = min(int(request.query.get(self.per_page, self.page_size)), self.world.page)
        number = int(request.query.get("page", 1))
        shown = result.entries[(number - 1) * size : number * size]
        if result.whole:
            shown = result.entries
        has_next = not result.whole and number * size < len(result.entries)
        headers = self.page_headers(request, result, shown, number + 1 if has_next else None)
        content = shown if result.key is None else {result.key: shown}
        return self._tagged(request, web.json_response(content, headers=headers))

    def page_headers(
        self, request: web.Request, page: Page, shown: list[Any], following: int | None
    ) -> dict[str, str]:
        """Return the headers that describe a page and the number of the next."""
        if following is None or not self.links:
            return {}
        url = request.url.update_query({"page": str(following)})
        return {"Link": f'<{url}>; rel="next", <{url}>; rel="last"'}

    def _tagged(self, request: web.Request, response: web.Response) -> web.Response:
        """Return a response with its ETag, or 304; the tag is that of the body alone."""
        if request.method != "GET" or not self.tags:
            return response
        assert isinstance(response.body, bytes)
        tag = f'W/"{hashlib.sha256(response.body).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        response.headers["ETag"] = tag
        return response

    def git_token(self, user: str, password: str) -> bool:
        """Return whether git may read and write with this login."""
        return password == self.world.token

    async def _git(self, request: web.Request) -> web.Response:
        login = _basic(request.headers.get("Authorization", ""))
        self.world.git_logins.append(":".join(login))
        if not self.git_token(*login):
            headers = {"WWW-Authenticate": 'Basic realm="Git"'}
            return web.Response(status=401, text="Authentication required", headers=headers)
        for former in self.world.former:
            if is_below(request.path, f"/{former}.git"):  # followed by git, if it may
                url = str(request.rel_url).replace(former, self.world.project, 1)
                return web.Response(status=301, headers={"Location": url})
        if request.path.endswith(".git/info/lfs/objects/batch"):
            return await self.world.lfs.batch(request)
        writes = "receive-pack" in str(request.rel_url)
        if writes and not self.world.may_push:
            return web.Response(status=403, text="Write access to repository not granted.")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.world.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "REMOTE_USER": login[0],
        }
        process = await asyncio.create_subprocess_exec(
            *("git", "http-backend"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        output, _ = await process.communicate(await request.read())
        head, _, content = output.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(fields.pop("Status", "200").split()[0])
        return web.Response(status=status, body=content, headers=fields)


def _basic(header: str) -> tuple[str, str]:
    kind, _, value = header.partition(" ")
    if kind != "Basic":
        return "", ""
    user, _, password = base64.b64decode(value).decode().partition(":")
    return user, password
