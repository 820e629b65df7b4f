"""Batches of requests of the client."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from draftsman.client.requests import Request

BATCH: Final = 1000
"""Requests that `submit_stream` submits in one statement."""


@contextmanager
def batch_note(position: int) -> Iterator[None]:
    """Note on an error which request is the first of its batch."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the batch that starts with request {position}; earlier jobs exist")
        raise


def in_batches(requests: Iterable[Request]) -> Iterator[list[Request]]:
    """Yield lists of BATCH requests."""
    items = iter(requests)
    while batch := list(islice(items, BATCH)):
        yield batch


async def batches(
    requests: Iterable[Request] | AsyncIterable[Request],
) -> AsyncIterator[list[Request]]:
    """Yield lists of BATCH requests, read as they are needed."""
    if isinstance(requests, Iterable):
        for batch in in_batches(requests):
            yield batch
        return
    batch = []
    async for request in requests:
        batch.append(request)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
