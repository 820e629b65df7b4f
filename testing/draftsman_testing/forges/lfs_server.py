"""Git LFS of a fake forge: the batch API, with transfers at another host.

https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md, docs/api/basic-transfers.md
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

MEDIA_TYPE: Final = "application/vnd.git-lfs+json"
TICKET: Final = "ticket-of-the-transfer"


@dataclass
class LfsServer:
    """The objects of a repository; their transfers need a ticket, and no token of the forge."""

    objects: dict[str, bytes] = field(default_factory=dict)
    verified: list[str] = field(default_factory=list)
    host: str = "localhost"
    """The host of transfers."""
    corrupt: bool = False
    """Whether another content than that of the object is sent."""

    async def batch(self, request: web.Request) -> web.Response:
        """Return the actions for some objects."""
        body = await request.json()
        if MEDIA_TYPE not in (request.headers.get("Accept"), request.headers["Content-Type"]):
            return web.json_response({"message": "Not Acceptable"}, status=406)
        base = f"http://{self.host}:{request.url.port}/lfs"
        answers = [self._answer(item, body["operation"], base) for item in body["objects"]]
        answer = json.dumps({"transfer": "basic", "objects": answers})
        return web.Response(text=answer, content_type=MEDIA_TYPE)

    async def transfer(self, request: web.Request) -> web.Response:
        """Send, take or verify an object."""
        oid = request.path.rpartition("/")[2]
        if request.headers.get("X-Ticket") != TICKET or "Authorization" in request.headers:
            return web.Response(status=403, text="needs a ticket, and nothing else")
        if request.method == "GET":
            data = self.objects[oid]
            return web.Response(body=data[::-1] if self.corrupt else data)
        if request.method == "PUT":
            data = await request.read()
            if hashlib.sha256(data).hexdigest() != oid:
                return web.Response(status=422, text="another content")
            self.objects[oid] = data
        else:
            self.verified.append((await request.json())["oid"])
        return web.Response()

    def _answer(self, item: dict[str, Any], operation: str, base: str) -> dict[str, Any]:
        oid = str(item["oid"])
        if re.fullmatch("[0-9a-f]{64}", oid) is None:
            return item | {"error": {"code": 422, "message": "not an object"}}
        kinds = ("download",) if operation == "download" else ("upload", "verify")
        if operation == "download" and oid not in self.objects:
            return item | {"error": {"code": 404, "message": "Object does not exist"}}
        if operation == "upload" and oid in self.objects:
            return item
        action = {"href": f"{base}/{oid}", "header": {"X-Ticket": TICKET}}
        return item | {"actions": dict.fromkeys(kinds, action)}
