"""The parameters of a job type, by the signature of its function."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from types import UnionType
from typing import Any, Final, Generic, NotRequired, Protocol, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict as ParametersDict
from typing_extensions import is_typeddict

from draftsman import field_errors
from draftsman.errors import ConfigError, Failure, UsageError
from draftsman.formats.value_problems import FORMAT_OF_NAMES
from draftsman.job_types.secret_name import RunSecrets, SecretName
from draftsman.jobs.runs.outcome import Cancel, Done, Snooze
from draftsman.text_template import check

R = TypeVar("R")
VALUE: Final = "value"
"""Key of a result that is no object."""
_CONFIG: Final = ConfigDict(extra="forbid")


class Parameters:
    """The parameters of a function: how they are checked, stored in a payload, and described.

    A function has parameters with names, or a single model that is the whole payload: a class of
    pydantic, a dataclass, a TypedDict or a Struct of msgspec. Stored are those that were given: a
    default is that of the code that runs.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        signature = _signature(name, function)
        context, *parameters = signature.parameters.values()
        self.context = context.annotation
        """The type of the first parameter."""
        self._signature = signature
        self._names = tuple(parameter.name for parameter in parameters)
        self._model = _model_of(parameters)
        if self._model is None:
            self._values = _pydantic(name, _typed_dict(name, parameters))
            self._defaults = {
                parameter.name: parameter.default
                for parameter in parameters
                if parameter.default is not parameter.empty
            }
        else:
            self._values = _values(name, self._model)
            self._defaults = {}
        self.results: Results[Any] = Results(name, signature.return_annotation)
        """The values that the function returns."""

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters as a JSON Schema of an object, with their defaults."""
        schema = self._values.schema()
        for name, value in self._dumped_defaults():
            schema["properties"][name].setdefault("default", value)
        return schema

    def payload(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of a call; raises UsageError, as a worker would."""
        try:
            given = self._signature.bind(None, *args, **kwargs)
        except TypeError as error:
            raise UsageError(f"{self._name}: {error}") from None
        values = {name: value for name, value in given.arguments.items() if name in self._names}
        if self._model is None:
            return self._dump(self._check(values))
        (value,) = values.values()
        return self._dump(self._check(value))

    def checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload of values by name; raises UsageError, also for a missing one."""
        return self._dump(self._check(dict(values)))

    @cached_property
    def name_secrets(self) -> bool:
        """Whether a parameter is the name of a secret."""
        return FORMAT_OF_NAMES in json.dumps(self._values.schema())

    def arguments(
        self, payload: Mapping[str, Any], secrets: RunSecrets | None = None
    ) -> dict[str, Any]:
        """Return what the function is called with, by name; raises UsageError.

        Raises Failure for a name that the `secrets` of the worker do not have.
        """
        value = self._check(dict(payload), secrets)
        if self._model is not None:
            return {self._names[0]: value}
        if secrets is None:
            return dict(value)
        defaults = {
            name: secrets.bind(default.name)
            for name, default in self._defaults.items()
            if isinstance(default, SecretName) and name not in value
        }
        return {**value, **defaults}

    def check_template(self, template: str, setting: str) -> str:
        """Return a text with names of parameters in braces; raises ConfigError for others."""
        names = tuple(self.schema.get("properties", {}))
        try:
            return check(template, names, name=f"{self._name}: {setting}", default="none")
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def _check(self, value: Any, secrets: RunSecrets | None = None) -> Any:
        try:
            return self._values.check(value, secrets)
        except ValidationError as error:
            subject = f"payload of {self._name}"
            names = () if self._model else self._names
            raise field_errors.field_error(
                error, subject, parent="payload", allowed=names, shows=lambda _: True
            ) from None
        except ValueError as error:
            raise UsageError(f"{self._name}: {error}") from None

    def _dump(self, value: Any) -> dict[str, Any]:
        try:
            return dict(self._values.dump(value, exclude_unset=True))
        except (PydanticSerializationError, TypeError) as error:
            raise UsageError(f"{self._name}: the parameters are no JSON: {error}") from None

    def _dumped_defaults(self) -> Iterator[tuple[str, Any]]:
        for name, value in self._defaults.items():
            yield name, self._values.dump({name: value}, exclude_unset=True)[name]


class Results(Generic[R]):
    """The results of a function, by its annotation; without one, any JSON.

    A result that is no object is stored as `{"value": …}`, and nothing as `{}`.
    """

    def __init__(self, name: str, annotation: Any) -> None:
        of = _result_type(annotation)
        self._is_any = of is Any
        self._values = _values(name, of)

    def dump(self, value: Any) -> dict[str, Any]:
        """Return a result as JSON has it; raises Failure."""
        if value is None:
            return {}
        try:
            dumped = self._values.dump(value, exclude_unset=False)
        except (PydanticSerializationError, TypeError, ValueError) as error:
            text = f"the result is no JSON: {error}; return a dictionary, or a type of pydantic"
            raise Failure(text, declared="INVALID_OUTPUT") from None
        is_stored = isinstance(dumped, dict) and not (self._is_any and dumped.keys() == {VALUE})
        return dumped if is_stored else {VALUE: dumped}

    def load(self, result: dict[str, Any]) -> R:
        """Return the result that was stored; raises ValueError for one of another type."""
        if not result:
            with suppress(ValueError):
                return cast(R, self._values.check(None))
        if result.keys() == {VALUE}:
            with suppress(ValueError):
                return cast(R, self._values.check(result[VALUE]))
        return cast(R, self._values.check(result))


def _result_type(annotation: Any) -> Any:
    """Return the type of the values that are no outcomes, which the function returns itself."""
    if annotation is inspect.Signature.empty:
        return Any
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    values = [option for option in options if option not in (Done, Snooze, Cancel)]
    if Done in options or not values:
        return Any
    return functools.reduce(operator.or_, values)


class _Values(Protocol):
    """Checks, dumps and describes values of a type."""

    def check(self, value: Any, secrets: RunSecrets | None = None) -> Any:
        """Return the value of JSON, or of Python; raises ValueError.

        With the `secrets` of a run, names of secrets are bound to them.
        """

    def dump(self, value: Any, *, exclude_unset: bool) -> Any:
        """Return the value as JSON has it, maybe without fields that were not set."""

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema."""


class _Pydantic:
    """Values of the types that pydantic knows."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    def check(self, value: Any, secrets: RunSecrets | None = None) -> Any:
        return self._adapter.validate_python(value, context=secrets)

    def dump(self, value: Any, *, exclude_unset: bool) -> Any:
        return self._adapter.dump_python(value, mode="json", exclude_unset=exclude_unset)

    def schema(self) -> dict[str, Any]:
        return self._adapter.json_schema()


class _Msgspec:
    """Values of a Struct."""

    def __init__(self, struct: type[Any]) -> None:
        self._msgspec = sys.modules["msgspec"]
        self._struct = struct

    def check(self, value: Any, secrets: RunSecrets | None = None) -> Any:
        return value if isinstance(value, self._struct) else self._convert(value)

    def dump(self, value: Any, *, exclude_unset: bool) -> Any:
        return self._msgspec.to_builtins(value)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = self._msgspec.json.schema(self._struct)
        name = schema.pop("$ref").removeprefix("#/$defs/")
        struct: dict[str, Any] = schema["$defs"].pop(name)
        return struct | schema

    def _convert(self, value: Any) -> Any:
        return self._msgspec.convert(value, self._struct)


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature with types; raises ConfigError for one without names."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise ConfigError(
            f"{name}: {error} in the annotations of {function.__qualname__}; import it where the"
            " module runs, not only for type checkers"
        ) from None
    if not signature.parameters:
        raise ConfigError(f"{name}: {function.__qualname__} needs a first parameter, the context")
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(
                f"{name}: {parameter} of {function.__qualname__} has no name of its own, as each"
                " parameter of a job must have"
            )
    return signature


def _model_of(parameters: list[inspect.Parameter]) -> Any:
    """Return the model that is the only parameter; None for other parameters."""
    if len(parameters) != 1:
        return None
    annotation = parameters[0].annotation
    return annotation if _is_model(annotation) else None


def _is_model(annotation: Any) -> bool:
    """Return whether a type has named fields of its own."""
    if not isinstance(annotation, type):
        return False
    is_data = dataclasses.is_dataclass(annotation) or is_typeddict(annotation)
    return is_data or issubclass(annotation, BaseModel) or _is_struct(annotation)


def _is_struct(annotation: Any) -> bool:
    msgspec = sys.modules.get("msgspec")
    if msgspec is None or not isinstance(annotation, type):
        return False
    return issubclass(annotation, msgspec.Struct)


def _typed_dict(name: str, parameters: list[inspect.Parameter]) -> Any:
    """Return a dictionary type of these parameters; those with a default may be absent."""
    fields: dict[str, Any] = {}
    for parameter in parameters:
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        is_required = parameter.default is parameter.empty
        fields[parameter.name] = annotation if is_required else NotRequired[annotation]
    make: Any = ParametersDict  # with fields that only the program knows
    values = make(name, fields)
    values.__pydantic_config__ = _CONFIG
    return values


def _values(name: str, annotation: Any) -> _Values:
    return _Msgspec(annotation) if _is_struct(annotation) else _pydantic(name, annotation)


def _pydantic(name: str, annotation: Any) -> _Values:
    try:
        return _Pydantic(TypeAdapter(annotation))
    except PydanticUserError as error:
        raise ConfigError(f"{name}: {error.message.splitlines()[0]}") from None
