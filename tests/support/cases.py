"""Cases of one test: a test for each case would cost ten times as much as most cases do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def cases(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Callable[[Any], str] | Sequence[object] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a test with each case, like `pytest.mark.parametrize`, and share its fixtures.

    All cases are called; those that failed are raised together, each with a note of its values.
    """
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else [*names]
    rows = [value if len(words) > 1 else (value,) for value in values]
    calls = [dict(zip(words, row, strict=True)) for row in rows]
    labels = [_label(number, call, ids) for number, call in enumerate(calls)]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def call_all(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for label, call in zip(labels, calls, strict=True):
                with _collected(failed, label):
                    test(**fixtures, **call)
            _raise(failed, len(calls))

        @functools.wraps(test)
        async def await_all(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for label, call in zip(labels, calls, strict=True):
                with _collected(failed, label):
                    await test(**fixtures, **call)
            _raise(failed, len(calls))

        result: Any = await_all if inspect.iscoroutinefunction(test) else call_all
        signature = inspect.signature(test)
        fixtures = [word for name, word in signature.parameters.items() if name not in words]
        result.__signature__ = signature.replace(parameters=fixtures)
        return result  # type: ignore[no-any-return]

    return decorate


def _label(
    number: int, call: dict[str, Any], ids: Callable[[Any], str] | Sequence[object] | None
) -> str:
    if ids is None:
        return ", ".join(f"{name}={value!r:.200}" for name, value in call.items())
    return str(ids[number]) if isinstance(ids, Sequence) else ", ".join(map(ids, call.values()))


@contextmanager
def _collected(failed: list[Exception], label: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"case: {label}")
        failed.append(error)


def _raise(failed: list[Exception], count: int) -> None:
    assert count, "there are no cases"
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {count} cases failed", failed)
