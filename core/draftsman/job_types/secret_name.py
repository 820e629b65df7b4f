"""Parameters that name a secret of the worker: a job has the name, and its run reads the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from draftsman import log
from draftsman.errors import Failure, NotOnThisWorker, UsageError
from draftsman.field_errors import HIDDEN_VALUE
from draftsman.formats.value_problems import FORMAT_OF_NAMES, NOT_A_VALUE
from draftsman.outbound.secret_values import MIN_LENGTH, read_secret
from draftsman.settings.secret import SecretSettings

PATTERN: Final = r"[a-z][a-z0-9_-]{0,62}"
_given: list[Mapping[str, str]] = []
"""The secrets of tests under way in this process, the innermost last."""


class SecretName:
    """The name of a secret in the worker's table `[secrets]`, as the parameter of a job type.

    Only a run on a worker can read the `value`, at each access. It is text, and shown as its name.
    """

    __slots__ = ("_read", "name")

    def __init__(self, name: str, *, _read: Callable[[], str] | None = None) -> None:
        """Raise UsageError for a text that is no name, without showing it."""
        if re.fullmatch(PATTERN, name) is None or log.redact(name) != name:
            raise UsageError(f"a SecretName {NOT_A_VALUE}")
        self.name = name
        self._read = _read

    @property
    def value(self) -> str:
        """The secret; raises UsageError outside of a run, and MissingSecret if it is gone."""
        if self._read is None:
            raise UsageError(f"the secret {self.name!r} is read in a run on a worker only")
        return self._read()

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"SecretName({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretName) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(
            lambda value, info: _parsed(value, info.context),
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: Any) -> dict[str, Any]:
        return dict(SCHEMA)


SCHEMA: Final = {"type": "string", "format": FORMAT_OF_NAMES, "pattern": f"^{PATTERN}$"}
"""The JSON Schema of a name."""


class RunSecrets:
    """The secrets that the parameters of a run name."""

    def __init__(self, sources: Mapping[str, SecretSettings]) -> None:
        self._sources = sources
        self.values: set[str] = set()
        """The values that were read so far."""

    def bind(self, name: str) -> SecretName:
        """Return the name of a secret that this worker has.

        Raises NotOnThisWorker, and Failure for a value that could not be hidden.
        """
        given = _given[-1] if _given else None
        if name not in (self._sources if given is None else given):
            text = f"no secret {name!r} on this worker; add it to [secrets]"
            raise NotOnThisWorker(text, code="no_such_secret")
        if given is None:
            read = partial(read_secret, self._sources[name], f"secret {name!r}")
        else:
            read = partial(str, given[name])
        value = read()
        if len(value) < MIN_LENGTH:
            text = (
                f"the secret {name!r} is shorter than {MIN_LENGTH} characters: it cannot be hidden"
            )
            raise Failure(text, code="secret_too_short", declared="PERMANENT")
        self.values.add(value)
        log.hide(value)
        return SecretName(name, _read=read)


@contextmanager
def given_secrets(secrets: Mapping[str, str] | None) -> Iterator[None]:
    """Let these be the secrets of the worker inside the block, in a test."""
    if secrets is None:
        yield
        return
    _given.append(secrets)
    try:
        yield
    finally:
        _given.remove(secrets)


def _parsed(value: Any, secrets: RunSecrets | None) -> SecretName:
    """Return the name in a payload, bound to the secrets of a run."""
    try:
        name = value if isinstance(value, SecretName) else SecretName(str(value))
    except UsageError:
        raise PydanticCustomError(HIDDEN_VALUE, NOT_A_VALUE) from None
    return name if secrets is None else secrets.bind(name.name)
