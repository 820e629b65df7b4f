"""Invocations: validated requests, each of which creates one job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self
from uuid import UUID

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from draftsman import sizes
from draftsman.field_errors import matching
from draftsman.ids import MAX_JOB, job_name, job_number
from draftsman.jobs.job import AGENT_TYPE, Condition, GroupKind, Mode, OnFailure, OnLost, Status
from draftsman.jobs.requests.repeated_jobs import UniqueBy, UniqueStates
from draftsman.jobs.reserved_names import RESERVED_KEYS
from draftsman.jobs.runs.job_limits import check_overrides
from draftsman.json_schemas.document_field import document
from draftsman.repos.repo_url import check_secret
from draftsman.text import canonical, clean_fields, first_line, text_digest

# Unique work: requests that repeat an earlier job, and join or replace it.


PERIOD = 86_400 * 366
"""Longest period, in seconds."""
DEBOUNCES = 10
"""Periods of a debounce after which the job starts in any case."""


class Unique(BaseModel):
    """The condition under which a request repeats an earlier job, and joins or replaces it.

    A job that has not started is replaced with `replace` and with `debounce`; the request then
    waits `debounce` seconds, but starts at the latest `debounce_limit` seconds after the first
    request. Otherwise the request joins the job: it is kept as an event of it.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    by: UniqueBy | None = None
    """Default: the first of these that the request has."""
    seconds: float | None = Field(None, gt=0, le=PERIOD)
    """How old the job may be; default: any age."""
    states: UniqueStates | None = None
    """Default: successful with `seconds`, else unfinished."""
    replace: bool = False
    debounce: float | None = Field(None, gt=0, le=PERIOD)
    debounce_limit: float | None = Field(None, gt=0, le=PERIOD)
    """Longest time from the first request to the start; default: DEBOUNCES times `debounce`."""

    @field_validator("debounce")
    @classmethod
    def _check_debounce(cls, value: float | None, info: ValidationInfo) -> float | None:
        others = info.data
        if value is None:
            return None
        if others.get("replace") or others.get("seconds") is not None:
            raise ValueError("use debounce alone, or a period and replace")
        if others.get("states") not in (None, UniqueStates.UNFINISHED):
            raise ValueError("replaces only a job that has not started; omit the states")
        return value

    @field_validator("debounce_limit")
    @classmethod
    def _check_limit(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None and value < (info.data.get("debounce") or PERIOD):
            raise ValueError("requires a debounce, and must be at least as long")
        return value

    @property
    def longest_debounce(self) -> float | None:
        """Seconds from the first request to the start of the job; None without debounce."""
        if self.debounce is None:
            return None
        return self.debounce_limit or min(PERIOD, self.debounce * DEBOUNCES)

    @property
    def considered(self) -> UniqueStates:
        """The jobs that a request can repeat."""
        if self.states is not None:
            return self.states
        return UniqueStates.UNFINISHED if self.seconds is None else UniqueStates.SUCCESSFUL

    @property
    def newest_wins(self) -> bool:
        """Whether a request replaces a job that has not started."""
        return self.replace or self.debounce is not None


FIRST_YEAR = 1971
LAST_YEAR = 2200
"""Years in which a job can be scheduled, in any time zone."""
TYPES = "allowed: letters, digits and _ . : - without spaces, a letter first, at most 100"
PLAIN = frozenset({"type", "key", "payload"})
"""The fields of a plain request; all others have their defaults."""
PARAMETERS = "parameters"
"""Key of the overrides under which a job keeps the parameters of its template."""
PAYLOAD_VERSION = "payload_version"
"""Key of the overrides under which a job keeps the version of its payload, unless it is 1."""
QUEUES = "allowed: letters, digits and _ . : - without spaces, at most 63"
_NAME = r"[A-Za-z][A-Za-z0-9_.-]{0,62}"
NAMES = "allowed: letters, digits and _ . - without spaces, a letter first, at most 63"

_Label = Annotated[str, Field(max_length=sizes.LABEL)]


class RepoResolution(BaseModel):
    """How the repository of a request was found, as in `ResolvedRepo.request`."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    method: str = Field("explicit", max_length=40)
    confidence: float = Field(1.0, ge=0, le=1)
    path: str = Field("", max_length=1000)
    """The folder of the repository to work on."""


class TemplateRef(BaseModel):
    """The version of a template from which a request was made."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=63)
    version: int = Field(ge=1, le=2**31 - 1)
    parameters: Annotated[dict[str, Any], document("the parameters")] = Field(default_factory=dict)
    """The values of its parameters, which are kept with the overrides of the job."""


class FileRef(BaseModel):
    """A file in a channel, as a request names it: `reference` is for its bot, without secrets."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    reference: Annotated[dict[str, Any], document("the reference", sizes.REFERENCE)]
    name: str = Field(max_length=1000)
    media_type: str | None = Field(None, max_length=200)
    size: int | None = Field(None, ge=0)
    """Bytes as the channel says, if it does."""
    reason: str | None = Field(None, max_length=500)
    """Why it is refused, if its bot knows that already."""

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)


class GroupRef(BaseModel):
    """The group of a request; with a kind it is created if it does not exist."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    name: Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}", QUEUES)]
    kind: GroupKind | None = None
    on_failure: OnFailure | None = None
    """None: stop, or that of the existing group."""

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.on_failure is not None and self.kind is None:
            raise ValueError("on_failure needs a kind: parallel or sequential")
        return self


class DigestFrame(NamedTuple):
    """The canonical JSON before and after the payload, of which the digest is the hash."""

    before: str
    after: str

    def digest(self, payload: str) -> str:
        """Return the digest of the request with this payload, as canonical JSON."""
        return text_digest(f"{self.before},{payload},{self.after}")


class Invocation(BaseModel):
    """A request to create a job, validated and cleaned; its free text is never changed."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    type: Annotated[str, matching(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}", TYPES)] = "run_agent"
    key: str | None = Field(None, min_length=1, max_length=500)
    """The idempotency key, scoped to the type; without it every request creates a job."""
    subject_key: str | None = Field(None, min_length=1, max_length=500)
    """Deduplication key: a request joins an unfinished job with the same subject."""
    unique: Unique | None = None
    """The earlier job that the request joins or replaces; None for a job of its own."""
    concurrency_key: str | None = Field(None, min_length=1, max_length=500)
    """Of the jobs with the same concurrency key, a single job runs or waits for a person."""
    queue: Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}", QUEUES)] = "default"
    priority: int = Field(0, ge=-1000, le=1000)
    """Jobs with a higher priority run first."""
    mode: Mode = Mode.FIX
    source_type: Literal["ticket", "plain_text_intake"] = "plain_text_intake"
    external_event_id: str | None = Field(None, max_length=500)
    agent: str | None = Field(None, max_length=100)
    repo: str | None = Field(None, min_length=1, max_length=4000)
    """Path or URL of a git repository."""
    ref: str | None = Field(None, min_length=1, max_length=250)
    """Branch, tag or commit to start from; default: the repository's HEAD."""
    resolution: RepoResolution | None = None
    """How the repository was found; None if the request named it."""
    labels: Annotated[
        tuple[tuple[_Label, _Label], ...], document("the list of labels", sizes.LABELS)
    ] = Field((), max_length=1000)
    """Ids and names of the request's labels, by which its repository is found."""
    title: str | None = Field(None, max_length=500)
    text: str | None = Field(None, max_length=200_000)
    url: str | None = Field(None, max_length=2000)
    payload: Annotated[dict[str, Any], document("the payload")] = Field(default_factory=dict)
    payload_version: int | None = Field(None, ge=1, lt=2**31)
    """The version of the parameters that the payload has; default: that of the described type."""
    overrides: Annotated[dict[str, Any], document("the overrides")] = Field(default_factory=dict)
    skills: tuple[Annotated[str, Field(max_length=sizes.SKILL)], ...] = Field(
        (), max_length=sizes.MAX_NAMES
    )
    tags: tuple[Annotated[str, Field(max_length=sizes.TAG)], ...] = Field(
        (), max_length=sizes.MAX_NAMES
    )
    run_at: AwareDatetime | None = None
    delay: float | None = Field(None, gt=0, le=86_400 * 366)
    """Seconds from now, by the database's clock; instead of `run_at`."""
    max_attempts: int | None = Field(None, ge=1, le=100)
    max_retries: int | None = Field(None, ge=0, le=100)
    on_lost: OnLost | None = None
    notify: tuple[Annotated[str, Field(max_length=sizes.TARGET)], ...] = Field((), max_length=20)
    """Notification targets: `log`, `webhook:NAME`, …; default: the configured targets."""
    attachments: tuple[FileRef, ...] = Field((), max_length=100)
    """Files of the request, which its bot downloads."""
    attachments_of: int | None = Field(None, ge=1, le=MAX_JOB)
    """A job of `after` whose attachments the job has as well."""
    template: TemplateRef | None = None
    """The template that the request was made from."""
    name: Annotated[str, matching(_NAME, NAMES)] | None = None
    """Name in its batch, for `after` of other requests of the batch."""
    after: tuple[int | str, ...] = Field((), max_length=10_000)
    """Jobs, by number or by name in the batch, that have to end before this job starts."""
    on: Condition = Condition.SUCCESS
    """How the jobs of `after` have to end."""
    group: GroupRef | None = None
    """The group that the job is added to."""

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @field_validator("repo")
    @classmethod
    def _refuse_secret(cls, value: str | None) -> str | None:
        if value is not None:
            check_secret(value)
        return value

    @field_validator("after", mode="before")
    @classmethod
    def _parse_parents(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            value = (value,)
        return tuple(_parse_parent(item) for item in value)

    @field_validator("group", mode="before")
    @classmethod
    def _parse_group(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("overrides")
    @classmethod
    def _check_limits(cls, value: dict[str, Any]) -> dict[str, Any]:
        check_overrides(value)
        return value

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.key is not None and self.key.startswith(RESERVED_KEYS):
            names = ", ".join(map(repr, RESERVED_KEYS))
            raise ValueError(f"the prefixes {names} of a key are reserved")
        if self.run_at is not None and not FIRST_YEAR <= self.run_at.year <= LAST_YEAR:
            bound = "before" if self.run_at.year < FIRST_YEAR else "after"
            year = FIRST_YEAR if bound == "before" else LAST_YEAR
            raise ValueError(f"a job cannot be scheduled {bound} the year {year}")
        if self.run_at is not None and self.delay is not None:
            raise ValueError("use run_at or delay, not both")
        if len(set(self.after)) < len(self.after):
            raise ValueError("after: the same job is named twice")
        if self.name is not None and job_number(self.name):
            raise ValueError(f"name {self.name!r} is the name of a job; use another name")
        if not self.after and "on" in self.model_fields_set:
            raise ValueError("on needs after")
        if self.unique is not None:
            if self.after or self.group is not None:
                raise ValueError(f"use {'after' if self.after else 'group'} or unique, not both")
            if self.unique.debounce is not None and (self.run_at or self.delay):
                raise ValueError("use debounce, or run_at or delay, not both")
            if self.unique.by == "key" and self.key is None:
                raise ValueError("unique by key needs a key")
            if self.unique.by == "subject" and self.subject_key is None:
                raise ValueError("unique by subject needs a subject")
        return self

    @property
    def digest(self) -> str:
        """Hash of the fields that identify a request; it excludes event ids and times."""
        return self.digest_frame.digest(canonical(self.payload))

    @property
    def digest_frame(self) -> DigestFrame:
        """What the digest has besides the payload."""
        title = _normal(self.title)
        text = _normal(self.text)
        before = [self.type, self.mode, self.repo, self.ref, self.agent, title, text]
        after = [self.overrides, sorted(self.skills)]
        return DigestFrame(canonical(before)[:-1], canonical(after)[1:])

    @property
    def asks_agent(self) -> bool:
        """Whether it is a request of an agent: by its type, or by what only an agent needs."""
        given = (self.agent, self.repo, self.ref, self.text, self.skills)
        return self.type == AGENT_TYPE or self.mode is not Mode.FIX or any(given)

    @property
    def unique_by(self) -> UniqueBy | None:
        """The common part of the request and those that it repeats."""
        if self.unique is None:
            return None
        if self.unique.by is not None:
            return self.unique.by
        if self.key is not None:
            return "key"
        return "args" if self.subject_key is None else "subject"

    @property
    def unique_key(self) -> str | None:
        """The text that the request has in common with those it repeats."""
        match self.unique_by:
            case None:
                return None
            case "key":
                return f"key {self.type} {self.key}"
            case "subject":
                return f"subject {self.subject_key}"
            case _:
                return f"args {self.type} {self.digest}"

    @property
    def idempotency_key(self) -> str | None:
        """The key, unless it only makes the request unique for a time."""
        return None if self.unique_by == "key" else self.key

    @property
    def parent_names(self) -> list[str]:
        """The jobs of `after` as they are shown."""
        return [job_name(parent) if isinstance(parent, int) else parent for parent in self.after]

    @property
    def is_plain(self) -> bool:
        """Whether only the fields of a plain request are set."""
        return self.model_fields_set <= PLAIN

    @property
    def stored_payload(self) -> dict[str, Any]:
        """The payload with the fields that have no column: repository source and labels."""
        payload = dict(self.payload)
        if self.labels:
            payload["labels"] = [list(label) for label in self.labels]
        if self.repo is not None:
            how = self.resolution.model_dump() if self.resolution else {}
            payload["repo"] = {"source": self.repo, "ref": self.ref, **how}
        elif self.ref is not None:
            payload["repo"] = {"source": None, "ref": self.ref}
        return payload

    @property
    def headline(self) -> str | None:
        """The title, or the first line of the text."""
        return self.title or (first_line(self.text) if self.text else None)


def _parse_parent(value: Any) -> int | str:
    """Return the number of a job, or the name of a request of the batch; raises ValueError."""
    if isinstance(value, str):
        if (number := job_number(value)) is not None:
            return number
        if re.fullmatch(_NAME, value):
            return value
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_JOB:
        return value
    raise ValueError(f"{str(value)[:60]!r} is not a job, such as D-142, or a name; {NAMES}")


def _normal(text: str | None) -> str:
    return " ".join(text.split()) if text else ""


# The result of a submission.


class SubmitResult(NamedTuple):
    """The result for the request at index `place` of the batch.

    `outcome` is created, deduplicated (same type and key) or joined (same subject, active).
    """

    place: int
    number: int
    id: UUID
    status: Status
    request_digest: str
    outcome: str
    replaced: int | None = None
    """The job that was canceled for it, before its start."""


@dataclass(frozen=True, slots=True)
class RecentDuplicate:
    """A job with the same text, submitted `age` seconds before."""

    number: int
    status: Status
    age: float
