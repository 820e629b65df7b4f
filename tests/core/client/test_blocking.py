"""Each public method of the asynchronous client has a blocking twin."""

from __future__ import annotations

import functools
import inspect
import operator
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import GenericAlias, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import pytest

from draftsman import BlockingClient, Client, Request
from tests.core.client.write_blocking import FILE, blocking_client
from tests.support.cases import cases
from tests.support.signatures import parameters

METHODS = sorted(name for name in dir(Client) if not name.startswith("_"))
OF_ITSELF = {"submit_stream"}
"""Methods of the blocking client that do not call their twin."""


def test_clients_have_the_same_methods() -> None:
    blocking = {name for name in dir(BlockingClient) if not name.startswith("_")}
    assert blocking - {"close"} == set(METHODS)


def test_module_matches_the_client() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert blocking_client() == text, "regenerate it: python -m tests.core.client.write_blocking"


@cases("name", METHODS)
def test_method_has_a_twin_of_its_signature_and_documentation(name: str) -> None:
    method = getattr(Client, name)
    twin = getattr(BlockingClient, name)
    assert not inspect.iscoroutinefunction(twin)
    assert inspect.getdoc(twin) == inspect.getdoc(method)
    assert parameters(twin) == parameters(method)
    hints = get_type_hints(method)
    assert get_type_hints(twin) == {key: _blocking_type(hints[key]) for key in hints}


def _blocking_type(hint: Any) -> Any:
    if get_origin(hint) is AsyncIterator:
        return GenericAlias(Iterator, get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        members = [item for item in get_args(hint) if get_origin(item) is not AsyncIterable]
        return functools.reduce(operator.or_, members)
    return hint


class Recorder:
    """A client whose methods return their name and arguments."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(Client, name)

        def recorded(*args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:
            arguments = inspect.signature(method).bind(self, *args, **kwargs).arguments
            return name, {key: arguments[key] for key in arguments if key != "self"}

        async def call(*args: Any, **kwargs: Any) -> Any:
            return recorded(*args, **kwargs)

        async def iterate(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            yield recorded(*args, **kwargs)

        return iterate if inspect.isasyncgenfunction(method) else call


@pytest.fixture
def recording() -> Iterator[BlockingClient]:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Client]:
        yield cast(Client, Recorder())

    client = BlockingClient(connect())
    yield client
    client.close()


@cases("name", sorted(set(METHODS) - OF_ITSELF))
def test_call_passes_each_argument_on(recording: BlockingClient, name: str) -> None:
    method = getattr(recording, name)
    signature = inspect.signature(method)
    values: dict[str, Any] = {
        key: {f"of {key}": 1} if parameter.kind is parameter.VAR_KEYWORD else [key]
        for key, parameter in signature.parameters.items()
    }
    call = signature.bind_partial()
    call.arguments.update(values)
    result = method(*call.args, **call.kwargs)
    if isinstance(result, Iterator):
        (result,) = result
    returns_nothing = signature.return_annotation == "None"
    assert result == (None if returns_nothing else (name, values))


def test_requests_are_read_in_the_thread_of_the_caller(recording: BlockingClient) -> None:
    def requests() -> Iterator[Request]:
        threads.append(threading.current_thread())
        yield {}

    threads: list[threading.Thread] = []
    recording.submit_many(requests())
    next(recording.submit_stream(requests()))
    assert threads == [threading.current_thread()] * 2
