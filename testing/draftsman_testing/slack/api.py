"""The HTTP server for the app: the Web API, response_urls and uploads."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import web

from draftsman_testing.fake.faults import Fault, respond
from draftsman_testing.slack import methods as _registers  # noqa: F401
from draftsman_testing.slack import response_urls
from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.faults import Faults
from draftsman_testing.slack.methods.files import content, receive
from draftsman_testing.slack.methods.registry import METHODS, Args, Method, need_scope
from draftsman_testing.slack.rate_tiers import RateTiers
from draftsman_testing.slack.world import Call, Json, World


class Api:
    """The handlers; every call passes the faults and is recorded."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults
        self._paced: dict[str, float] = {}
        self.tiers = RateTiers(world)
        self.pace: float | None = None
        """Minimum seconds between messages in a channel; earlier messages get 429."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.route("*", "/api/{method}", self.method),
            web.post("/response/{name}", self.response),
            web.post("/upload/{file}", self.upload),
            web.get("/files-pri/{file}/{name:.*}", self.download),
        ]

    async def method(self, request: web.Request) -> web.Response:
        """Handle a call of the Web API."""
        name = request.match_info["method"]
        try:
            args = await _args(request)
        except ApiError as refused:
            return self._refusal(name, Args(), refused)
        header = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        token = header or (args.pop("token", "") if name != "apps.connections.open" else "")
        args.pop("token", None)

        def done() -> web.Response:
            try:
                work = partial(self._allowed(name, str(token)).work, self._world, args)
                result = self._faults.perform(name, args, work)
            except ApiError as refused:
                return self._refusal(name, args, refused)
            return self._record(name, args, "ok", self._json({"ok": True} | result, name))

        if (wait := self._too_soon(name, args)) is not None:
            return self._record(name, args, "rate limit", _limited(wait))
        return await self._respond(name, args, request, done)

    async def response(self, request: web.Request) -> web.Response:
        """Handle a response_url."""
        args = Args(await _args(request))

        def done() -> web.Response:
            status, body = response_urls.use(self._world, request.match_info["name"], args)
            outcome = "ok" if status == 200 else str(body.get("error"))
            answer = (
                web.json_response(body, status=status)
                if status != 200
                else web.Response(text="ok", content_type="text/plain")
            )
            return self._record("response_url", args, outcome, answer)

        return await self._respond("response_url", args, request, done)

    async def upload(self, request: web.Request) -> web.Response:
        """Receive the bytes of a file."""
        data = await request.read()
        args = Args(file=request.match_info["file"], length=len(data))

        def done() -> web.Response:
            problem = receive(self._world, args["file"], data)
            answer = web.Response(
                text=problem or f"OK - {len(data)}", status=400 if problem else 200
            )
            return self._record("upload", args, problem or "ok", answer)

        return await self._respond("upload", args, request, done)

    async def download(self, request: web.Request) -> web.Response:
        """Return the content of a file; without the right token, redirect to the sign-in."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        args = Args(file=request.match_info["file"])

        def done() -> web.Response:
            file = content(self._world, args["file"], token)
            if file is None:
                answer = web.Response(status=302, headers={"Location": "https://fake.slack.com/"})
                return self._record("download", args, "redirect", answer)
            answer = web.Response(body=file["data"], content_type=file["mimetype"])
            return self._record("download", args, "ok", answer)

        return await self._respond("download", args, request, done)

    async def _respond(
        self, name: str, args: Args, request: web.Request, done: Callable[[], web.Response]
    ) -> web.Response:
        async def perform() -> web.Response:
            return done()

        def refuse(fault: Fault) -> web.Response | None:
            if fault.name == "error":
                refusal = self._refusal(name, args, ApiError(fault.code))
                refusal.set_status(fault.status)
                return refusal
            self._record(name, args, fault.name, web.Response())
            return _limited(fault.seconds) if fault.name == "rate limit" else None

        return await respond(request, self._faults.take(name), perform, refuse)

    def _allowed(self, name: str, token: str) -> Method:
        world = self._world
        method = METHODS.get(name)
        if method is None:
            raise ApiError("unknown_method", req_method=name)
        if not token:
            raise ApiError("not_authed")
        known = {world.bot_token: "bot", world.app_token: "app"}
        if token not in known:
            raise ApiError("invalid_auth")
        if known[token] != method.token:
            raise ApiError("not_allowed_token_type")
        if world.account is not None and method.token == "bot":
            raise ApiError(world.account)
        need_scope(world, *method.scopes)
        return method

    def _too_soon(self, name: str, args: Args) -> float | None:
        if (wait := self.tiers.wait(name)) is not None:
            return wait
        if self.pace is None or name != "chat.postMessage":
            return None
        channel = str(args.get("channel"))
        now = self._world.now()
        if (left := self._paced.get(channel, 0.0) + self.pace - now) > 0:
            return left
        self._paced[channel] = now
        return None

    def _refusal(self, name: str, args: Args, refused: ApiError) -> web.Response:
        return self._record(name, args, refused.error, self._json(refused.body(), name))

    def _json(self, body: Json, name: str) -> web.Response:
        method = METHODS.get(name)
        headers = {
            "X-OAuth-Scopes": ",".join(sorted(self._world.scopes)),
            "X-Accepted-OAuth-Scopes": ",".join(method.scopes if method else ()),
        }
        return web.json_response(body, headers=headers)

    def _record(self, name: str, args: Args, outcome: str, answer: web.Response) -> web.Response:
        self._world.record(Call(name, dict(args), outcome))
        return answer


def _limited(seconds: float) -> web.Response:
    headers = {"Retry-After": f"{seconds:g}"}
    return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)


async def _args(request: web.Request) -> Args:
    args: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        try:
            content = json.loads(await request.text())
        except ValueError:
            raise ApiError("invalid_json") from None
        if not isinstance(content, dict):
            raise ApiError("json_not_object")
        args |= content
    else:
        args |= dict(await request.post())
    return Args({name: value for name, value in args.items() if value is not None})
