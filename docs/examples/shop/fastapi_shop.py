"""FastAPI: a request submits a job and returns at once; another one asks for the result.

fastapi run fastapi_shop.py
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from shop import refund

from draftsman import Client, Draftsman
from draftsman.errors import NotFound


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[dict[str, Client], None]:
    async with Draftsman() as client:
        yield {"client": client}


def client_of(request: Request) -> Client:
    return request.state.client


app = FastAPI(lifespan=lifespan)
TheClient = Annotated[Client, Depends(client_of)]


@app.post("/orders/{order}/refund", status_code=202)
async def request_refund(order: int, client: TheClient, euros: int = 20) -> dict[str, str]:
    options = refund.with_options(client=client, key=f"order-{order}")  # a click twice: one job
    job = await options.submit_async(order=order, euros=euros)
    return {"job": job.name}


@app.get("/jobs/{name}")
async def result(name: str, client: TheClient) -> dict[str, Any]:
    try:
        job = await client.get(name)
    except NotFound as error:
        raise HTTPException(404, str(error)) from None
    return {"status": job.status, "result": job.result, "error": job.last_error}
