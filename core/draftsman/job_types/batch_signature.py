"""The signature of a single run of a batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import UnionType
from typing import Any, Union, get_args, get_origin

from draftsman.errors import ConfigError
from draftsman.handlers.batches import BatchRun


def single_run(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the signature of a single run of a batch; raises ConfigError."""
    signature = inspect.signature(function, eval_str=True)
    parameters = [*signature.parameters.values()]
    annotation = parameters[0].annotation if len(parameters) == 1 else None
    arguments = get_args(annotation)
    if not arguments or get_origin(arguments[0]) is not BatchRun:
        raise ConfigError(
            f"{name}: a function with batch= takes one parameter, a Sequence[BatchRun[…]] of the"
            " model with the parameters of a job"
        )
    (model,) = get_args(arguments[0])
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    context = inspect.Parameter("runs", kind)
    payload = inspect.Parameter("payload", kind, annotation=model)

    def one(*_: Any) -> None:
        """Stand for the function."""

    one.__qualname__ = function.__qualname__
    result = signature.return_annotation
    results = get_args(result)
    single = results[0] if results else inspect.Signature.empty
    one.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [context, payload], return_annotation=_without_errors(single)
    )
    return one


def _without_errors(annotation: Any) -> Any:
    """Return the type of results without those of errors."""
    if get_origin(annotation) not in (UnionType, Union):
        return annotation
    kept = [*_values(get_args(annotation))]
    return Union[tuple(kept)] if kept else Any  # noqa: UP007 - of types that only run time knows


def _values(options: Sequence[Any]) -> Iterator[Any]:
    for option in options:
        with suppress(TypeError):
            if issubclass(option, BaseException):
                continue
        yield option
