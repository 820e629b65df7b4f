"""A Bolt app that acknowledges mentions and does nothing else: `python -m bench.bare_bolt_app`."""

from __future__ import annotations

import os
import sys

import uvicorn
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from draftsman_bots.process.http import bind


def application() -> Starlette:
    """Return the app on the same framework as draftsman's."""
    client = AsyncWebClient(os.environ["BENCH_BOT_TOKEN"], base_url=os.environ["BENCH_API"])
    app = AsyncApp(client=client, signing_secret=os.environ["BENCH_SIGNING_SECRET"])

    @app.event("app_mention")
    async def mention() -> None:
        pass

    handler = AsyncSlackRequestHandler(app)

    async def slack(request: Request) -> Response:
        return await handler.handle(request)

    return Starlette(routes=[Route("/slack/events", slack, methods=["POST"])])


if __name__ == "__main__":
    listening = bind(("127.0.0.1", 0), "slack")
    print(f"serving HTTP on 127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    config = uvicorn.Config(application(), log_config=None, access_log=False, lifespan="off")
    uvicorn.Server(config).run([listening])
