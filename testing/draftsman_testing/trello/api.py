"""REST API of the fake: applies limits and faults, and records every request."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.web_request import FileField

from draftsman_testing.fake import faults
from draftsman_testing.fake.faults import respond
from draftsman_testing.trello import auth, methods
from draftsman_testing.trello.api_errors import ApiError
from draftsman_testing.trello.entities import Call, Json
from draftsman_testing.trello.faults import Fault, Faults
from draftsman_testing.trello.limits import Meter
from draftsman_testing.trello.methods.registry import ROUTES, ApiCall, File, Route
from draftsman_testing.trello.webhook_delivery import WebhookDelivery
from draftsman_testing.trello.world import World

MAX_BODY: Final = 2**28
assert methods.__all__, "the routes register themselves"


class Api:
    """Serves `/1/...`, as api.trello.com and trello.com both do."""

    def __init__(
        self, world: World, webhook_delivery: WebhookDelivery, faults: Faults, meter: Meter
    ) -> None:
        self._world = world
        self._webhook_delivery = webhook_delivery
        self._faults = faults
        self._meter = meter
        self.broken: list[Exception] = []
        """Errors of the fake itself."""
        self.attachment_most = 10 * 2**20
        """Bytes of the largest attachment: 10 MB is common knowledge, no source of Trello's."""

    def routes(self) -> list[web.RouteDef]:
        """Return the ASGI application."""
        return [web.route("*", "/1/{path:.*}", self.serve)]

    async def serve(self, request: web.Request) -> web.Response:
        """Answer a call. An invalid id is refused before the token is checked.

        A token in the path is enough: py-trello creates webhooks without another.
        """
        path = f"/{request.match_info['path']}"
        query = dict(request.query)
        try:
            body, files = await _body(request)
        except ApiError as refused:
            return self._refuse(
                Call(request.method, path, str(request.rel_url), {}, "", ""), refused
            )
        key, token, by = auth.taken(request.headers.get("Authorization", ""), query, body)
        match = _route(request.method, path)
        template = match[0].path if match else path
        call = Call(request.method, template, str(request.rel_url), query | body, by, "")
        if match is None:
            text = f"Cannot {request.method} /1{path}"
            return self._refuse(call, ApiError(404, text))
        route, parts = match
        try:
            route.check(parts)
            auth.check(self._world, key, token or parts.get("token", ""))
        except ApiError as refused:
            return self._refuse(call, refused)
        if (code := self._meter.over(path, self._world.now())) is not None:
            return self._limited(call, code)
        args = {name: value for name, value in call.args.items() if value is not None}
        api_call = ApiCall(
            self._world,
            self._webhook_delivery,
            self._world.bot,
            parts,
            args,
            self.attachment_most,
            files,
            by,
        )
        return await self._respond(request, call, route, api_call)

    async def _respond(
        self, request: web.Request, call: Call, route: Route, api_call: ApiCall
    ) -> web.Response:
        fault = self._faults.take((route.method, route.path))
        if fault == Fault.ECHO_FIRST:
            response = await self._perform(call, route, api_call)
            await self._webhook_delivery.deliver()
            return response
        return await respond(
            request,
            fault,
            partial(self._perform, call, route, api_call),
            partial(self._refuse_before, call),
        )

    async def _perform(self, call: Call, route: Route, api_call: ApiCall) -> web.Response:
        try:
            name = (route.method, route.path)
            result = self._faults.perform(name, call.args, partial(route.work, api_call))
            content: Any = await result if inspect.isawaitable(result) else result
        except ApiError as refused:
            return self._refuse(call, refused)
        except Exception as error:
            self.broken.append(error)
            raise
        if isinstance(content, web.StreamResponse):
            self._record(call, str(content.status))
            return cast(web.Response, content)
        self._record(call, "200")
        return web.json_response(content, headers=self._headers())

    def _refuse_before(self, call: Call, fault: faults.Fault) -> web.Response | None:
        if fault.name == "error":
            return self._refuse(call, ApiError(fault.status, fault.text))
        if fault == Fault.RATE_LIMIT:
            return self._limited(call, "API_TOKEN_LIMIT_EXCEEDED")
        self._record(call, fault.name)
        return None

    def _refuse(self, call: Call, refused: ApiError) -> web.Response:
        self._record(call, str(refused.status))
        return web.Response(text=refused.text, status=refused.status, headers=self._headers())

    def _limited(self, call: Call, code: str) -> web.Response:
        self._record(call, "429")
        content = {"error": code, "message": "Rate limit exceeded"}
        return web.json_response(content, status=429, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return self._meter.headers(self._world.now())

    def _record(self, call: Call, outcome: str) -> None:
        self._world.record(replace(call, outcome=outcome))


def _route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    for route in ROUTES:
        if (parts := route.match(method, path)) is not None:
            return route, parts
    return None


async def _body(request: web.Request) -> tuple[Json, dict[str, File]]:
    """Return the api_call and the files of a body: JSON, a form, or both in parts.

    The error text for invalid JSON is from memory.
    """
    if request.content_type == "application/json":
        text = await request.text()
        try:
            content = json.loads(text) if text else {}
        except ValueError:
            raise ApiError(400, "Error parsing body: invalid json") from None
        return (content if isinstance(content, dict) else {}), {}
    fields: Json = {}
    files: dict[str, File] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, FileField):
            files[name] = File(value.filename, value.file.read(), value.content_type)
        else:
            fields[name] = value
    return fields, files
