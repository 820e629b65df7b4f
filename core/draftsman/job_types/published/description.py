"""The description of a job type: what its code declares, as data. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from draftsman.formats.truncation import truncate
from draftsman.jobs.retries import RetryPolicy
from draftsman.json_schemas.parameter_schema import ParameterSchema
from draftsman.text import clean, digest
from draftsman.text_template import fill

MAX_TITLE: Final = 500
"""Characters of the title of a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDescription:
    """What a program without the code of a job type needs to know of it."""

    name: str
    place: str
    """The module and the function: `company.jobs:weekly`."""
    description: str = ""
    title: str | None = None
    """The title of its jobs, with parameters in braces."""
    queue: str | None = None
    concurrency: str | None = None
    """The concurrency key of its jobs, with parameters in braces."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """JSON Schema of the payload."""
    payload_version: int = 1
    """The version of the parameters."""
    migrates: bool = False
    """Whether it migrates payloads of older versions."""
    limits: dict[str, Any] = field(default_factory=dict)
    """The limits that it sets, as those of `[types.NAME]`."""
    aliases: tuple[str, ...] = ()
    """Former names, whose jobs it runs."""
    schedules: tuple[dict[str, Any], ...] = ()
    """Each with `name`, `rule`, `zone` and `payload`."""
    app: str = ""
    """The app whose worker served it last: a module, or nothing without an app."""

    @property
    def inputs(self) -> ParameterSchema:
        """The parameters."""
        return ParameterSchema(self.parameters)

    @property
    def version(self) -> str:
        """SHA-256 of the description."""
        names = [name for name in TypeDescription.__slots__ if name != "app"]
        return digest([getattr(self, name) for name in names])

    def defaults(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of a request with this payload, which it has unless it says otherwise."""
        values = {**self.inputs.defaults, **payload}
        texts = {name: "" if value is None else str(value) for name, value in values.items()}
        fields = {
            "queue": self.queue,
            "title": self.title and truncate(clean(fill(self.title, texts)), MAX_TITLE),
            "concurrency_key": self.concurrency and fill(self.concurrency, texts),
        }
        return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a job type, and where its value comes from."""

    name: str
    value: Any
    source: str
    """`code`, `[types.NAME]` or `built in`."""


def limits_of(type: TypeDescription, configured: Mapping[str, Any]) -> list[Limit]:
    """Return the limits of a type; those of the configuration override those of the code."""
    limits = []
    for item in fields(RetryPolicy):
        if item.name in configured:
            limits.append(Limit(item.name, configured[item.name], f"[types.{type.name}]"))
        elif item.name in type.limits:
            limits.append(Limit(item.name, type.limits[item.name], "code"))
        elif item.default is not None:
            limits.append(Limit(item.name, item.default, "built in"))
    return limits


@dataclass(frozen=True, slots=True)
class WaitingPayload:
    """The payload of a job that waits, and the version of its parameters."""

    number: int
    payload: dict[str, Any]
    version: int


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """What the waiting jobs of a type will meet when they run, by its parameters of today."""

    checked: int
    migrated: int
    """Those of older versions, whose payloads the code migrates."""
    unfit: dict[str, str]
    """The problem of each job whose payload does not fit, by the name of the job."""
    has_more: bool
    """Whether there are others, which were not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedType(TypeDescription):
    """A description that workers published."""

    published_at: datetime
    """When a worker published it first."""
    served_at: datetime
    """When a worker that serves it started last."""
    workers: int
    """The live workers that serve it."""

    def __post_init__(self) -> None:
        """Convert the array of the database."""
        object.__setattr__(self, "aliases", tuple(self.aliases))
        object.__setattr__(self, "schedules", tuple(self.schedules))

    @property
    def module(self) -> str:
        """The module of its code: `company.jobs`."""
        return self.place.partition(":")[0]

    @property
    def sources(self) -> list[tuple[str, str]]:
        """Its module and its app, which may have other types, too."""
        apps = [("app", self.app)] if self.app else []
        return [("module", self.module), *apps]


def deployed(types: Sequence[PublishedType]) -> list[PublishedType]:
    """Return the types that the deployed code declares.

    The others have no live worker, and one that serves other types of their module, or of their
    app, was started after the last that served them: its code no longer has them.
    """
    newest: dict[tuple[str, str], datetime] = {}
    for type in types:
        for source in type.sources if type.workers else ():
            newest[source] = max(newest.get(source, type.served_at), type.served_at)
    return [
        type
        for type in types
        if type.workers
        or all(newest.get(source, type.served_at) <= type.served_at for source in type.sources)
    ]
