"""Job types, as a program declares them with `@job`.

@job("report:weekly", title="Report of week {week}", timeout=600)
def weekly(ctx: BlockingRunContext, week: int, region: str = "eu") -> Report: ...

weekly.submit(week=31)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial, update_wrapper
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from pydantic import ValidationError

from draftsman import field_errors
from draftsman.client.requests import Request
from draftsman.errors import ConfigError, Failure, UsageError
from draftsman.formats.truncation import truncate
from draftsman.handlers.batches import MAX_SIZE, BatchHandler, BatchRun
from draftsman.handlers.blocking_context import BlockingRunContext, run_in_thread
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.registry import Handler
from draftsman.job_types.batch_signature import single_run
from draftsman.job_types.lifespan import surrounded, surrounded_by_async
from draftsman.job_types.parameters import Parameters
from draftsman.job_types.payload_version import Migrate, PayloadVersion
from draftsman.job_types.process_runs import ProcessRuns
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.schedules import Every, described_schedules
from draftsman.job_types.secret_name import RunSecrets
from draftsman.job_types.submission import SubmitOptions, SubmittedJobOf, submit, submit_async
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.outbound.secret_values import hide_values
from draftsman.settings.job_types import TypeSettings

P = ParamSpec("P")
R = TypeVar("R")
D = TypeVar("D")
Isolation = Literal["thread", "process"]
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}")
MAX_DESCRIPTION: Final = 20_000
"""Characters of a docstring that are published."""
_SUBMISSION: Final = ("client", "connection")
"""Options that are no fields of the request."""


class Submittable(Generic[P, R]):
    """A job type with options of its submissions."""

    def __init__(self, type: JobType[P, R] | None, options: SubmitOptions) -> None:
        self._of = type
        self._options = options

    @property
    def _type(self) -> JobType[P, R]:
        return cast("JobType[P, R]", self) if self._of is None else self._of

    def with_options(self, **options: Unpack[SubmitOptions]) -> Submittable[P, R]:
        """Return this type with these options, such as `key` and `delay`, for its submissions."""
        return Submittable(self._type, cast(SubmitOptions, {**self._options, **options}))

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> SubmittedJobOf[R]:
        """Submit a job with these parameters.

        Raises UsageError for parameters that do not fit, and as `Draftsman.submit` does.
        """
        return self._submit([self.request(*args, **kwargs)])[0]

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> SubmittedJobOf[R]:
        """Submit a job with these parameters, as `submit` does, beside other tasks."""
        request = self.request(*args, **kwargs)
        client = self._options.get("client")
        (job,) = await submit_async([request], client, self._options.get("connection"))
        return SubmittedJobOf(job, self._type.parameters.results, client)

    def submit_many(self, parameters: Iterable[Mapping[str, Any]]) -> list[SubmittedJobOf[R]]:
        """Submit a job for each of the parameters, by name, in one statement."""
        return self._submit([self._request((), each) for each in parameters])

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request:
        """Return the request for `Draftsman.submit_many` and others; raises UsageError."""
        return self._request(args, kwargs)

    def _submit(self, requests: Sequence[Request]) -> list[SubmittedJobOf[R]]:
        client = self._options.get("client")
        jobs = submit(requests, client, self._options.get("connection"))
        return [SubmittedJobOf(job, self._type.parameters.results, client) for job in jobs]

    def _request(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request:
        payload = self._type.parameters.payload(args, kwargs)
        given = {key: value for key, value in self._options.items() if key not in _SUBMISSION}
        fields = {"type": self._type.name, **self._type.description.defaults(payload), **given}
        if (version := self._type.version.number) != 1:
            fields["payload_version"] = version
        return cast(Request, {**fields, "payload": payload})


class JobType(Submittable[P, R]):
    """A job type that code declares: its function, its parameters and its settings."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        title: str | None,
        queue: str | None,
        concurrency: str | None,
        aliases: Sequence[str],
        schedule: Every | Sequence[Every] | None = None,
        isolation: Isolation,
        memory_mb: int | None,
        version: int,
        migrate: Migrate | None,
        batch: int | None,
        limits: Mapping[str, Any],
    ) -> None:
        super().__init__(None, {})
        for each in (name, *aliases):
            if _NAME.fullmatch(each) is None:
                raise ConfigError(
                    f"{each!r} is no name of a job type; it begins with a letter, and has at most"
                    " 100 letters, digits, '_', '.', ':' or '-'"
                )
        self.name = name
        self.function = function
        self.batch = batch
        """The maximum number of runs that the function gets together; None: it gets one."""
        if batch is not None and not 1 <= batch <= MAX_SIZE:
            raise ConfigError(f"{name}: batch {batch!r} is no number from 1 to {MAX_SIZE}")
        if batch is not None and isolation == "process":
            raise ConfigError(f"{name}: a batch does not run in a process of its own")
        single = function if batch is None else single_run(name, function)
        self.parameters = Parameters(name, single)
        expected = BlockingRunContext if self.is_blocking else RunContext
        if self.parameters.context not in (expected, inspect.Parameter.empty):
            kind = (
                "a function, which runs in a thread," if self.is_blocking else "an async function"
            )
            raise ConfigError(f"{name}: {kind} takes a {expected.__name__} as its first parameter")
        self.title = _checked(self.parameters, title, "title")
        self.queue = queue
        self.concurrency = _checked(self.parameters, concurrency, "concurrency")
        self.aliases = tuple(aliases)
        """Former names, whose jobs this type runs."""
        if isolation == "process" and not self.is_blocking:
            raise ConfigError(f"{name}: a process of its own runs no async function; remove async")
        if memory_mb is not None and isolation != "process":
            raise ConfigError(f'{name}: memory_mb needs isolation="process"')
        self.isolation = isolation
        self.memory_mb = memory_mb
        self.version = PayloadVersion(name, version, migrate)
        self.schedules = described_schedules(name, self.parameters, schedule)
        self.limits = _limits(name, limits)
        """The limits that are set, as those of `[types.NAME]`."""
        update_wrapper(cast(Any, self), function)

    @property
    def place(self) -> str:
        """The module and the function: `company.jobs:weekly`."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @cached_property
    def description(self) -> TypeDescription:
        """What workers publish of the type."""
        return TypeDescription(
            name=self.name,
            place=self.place,
            description=truncate(inspect.getdoc(self.function) or "", MAX_DESCRIPTION),
            title=self.title,
            queue=self.queue,
            concurrency=self.concurrency,
            parameters=self.parameters.schema,
            payload_version=self.version.number,
            migrates=self.version.migrate is not None,
            limits=self.limits,
            aliases=self.aliases,
            schedules=self.schedules,
        )

    @property
    def is_blocking(self) -> bool:
        """Whether the function runs in a thread."""
        return not inspect.iscoroutinefunction(self.function)

    def run_blocking(self, context: BlockingRunContext, /, **arguments: Any) -> Any:
        """Run the function in this thread, inside the middleware."""
        with surrounded(context.job):
            return self.function(context, **arguments)

    @contextmanager
    def surround(self, jobs: Sequence[ClaimedJob]) -> Iterator[None]:
        """Run the block inside the middleware of each of these runs, the first outermost."""
        with ExitStack() as stack:
            for job in jobs:
                stack.enter_context(surrounded(job))
            yield

    async def run_with(
        self, context: RunContext, call: Callable[[dict[str, Any]], Awaitable[Any]]
    ) -> Outcome:
        """Return the outcome of a run, whose parameters are passed to the call."""
        secrets = None
        if self.parameters.name_secrets:
            run = worker_run(context)
            secrets = RunSecrets(run.settings.secrets)
            run.secrets = secrets.values
        try:
            arguments = self.parameters.arguments(self.version.payload_of(context.job), secrets)
        except UsageError as error:
            text = f"{error}{self.version.note(context.job)}"
            raise Failure(text, code="invalid_payload", declared="PERMANENT") from None
        async with surrounded_by_async(context.job):
            value = await call(arguments)
        if isinstance(value, Snooze | Cancel):
            return value
        outcome = value if isinstance(value, Done) else Done(self.parameters.results.dump(value))
        return outcome if secrets is None else Done(hide_values(outcome.result, secrets.values))

    def handler(self, processes: ProcessRuns | None = None) -> Handler:
        """Return the handler for a worker; without processes it runs in a thread instead."""
        if self.batch is not None:
            return BatchHandler(self, self.batch)
        return cast(Handler, update_wrapper(partial(_run, self, processes), self.function))


class AsyncJobType(JobType[P, R]):
    """A job type with an async function, which shares the event loop of its worker."""

    def __call__(
        self, ctx: RunContext, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Call the function, as a test does."""
        return cast("Coroutine[Any, Any, R]", self.function(ctx, *args, **kwargs))


class BlockingJobType(JobType[P, R]):
    """A job type with a function that runs in a thread."""

    def __call__(self, ctx: BlockingRunContext, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, as a test does."""
        return cast(R, self.function(ctx, *args, **kwargs))


class BatchJobType(JobType[P, R]):
    """A job type whose function gets the runs of several jobs together."""

    def __call__(self, runs: Sequence[BatchRun[Any]], /) -> Any:
        """Call the function, as a test does; that of a coroutine returns one."""
        return self.function(runs)


async def _run(
    type: JobType[Any, Any], processes: ProcessRuns | None, context: RunContext
) -> Outcome:
    """Run the function of a type with the payload of the job."""

    async def call(arguments: dict[str, Any]) -> Any:
        if type.isolation == "process" and processes is not None:
            return await processes.run(context, type.name, arguments, type.memory_mb)
        if type.is_blocking:
            return await run_in_thread(context, partial(type.run_blocking, **arguments))
        with surrounded(context.job):
            return await type.function(context, **arguments)

    return await type.run_with(context, call)


class Declaration:
    """The decorator of a job type."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        self._name = name
        self._settings = settings

    @overload
    def __call__(
        self, function: Callable[Concatenate[RunContext, P], Coroutine[Any, Any, R]]
    ) -> AsyncJobType[P, R]: ...

    @overload
    def __call__(
        self, function: Callable[[Sequence[BatchRun[D]]], Coroutine[Any, Any, Sequence[R]]]
    ) -> BatchJobType[[D], R]: ...

    @overload
    def __call__(
        self, function: Callable[[Sequence[BatchRun[D]]], Sequence[R]]
    ) -> BatchJobType[[D], R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[BlockingRunContext, P], R]
    ) -> BlockingJobType[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Return the type; raises ConfigError."""
        is_async = inspect.iscoroutinefunction(function)
        kind: type[JobType[Any, Any]] = AsyncJobType if is_async else BlockingJobType
        if self._settings["batch"] is not None:
            kind = BatchJobType
        declared = kind(self._name, function, **self._settings)
        for name in (declared.name, *declared.aliases):
            other = declared_types.setdefault(name, declared)
            if other.place != declared.place:
                raise ConfigError(
                    f"the job type {name} is declared twice, by {other.place} and {declared.place}"
                )
            declared_types[name] = declared
        return declared


declared_types: Final[dict[str, JobType[Any, Any]]] = {}
"""The types that the imported modules of this process declare, by name and alias."""


def job(
    name: str,
    *,
    title: str | None = None,
    queue: str | None = None,
    concurrency: str | None = None,
    aliases: Sequence[str] = (),
    schedule: Every | Sequence[Every] | None = None,
    timeout: float | None = None,
    step_timeout: float | None = None,
    call_timeout: float | None = None,
    max_attempts: int | None = None,
    max_retries: int | None = None,
    base_delay: float | None = None,
    max_delay: float | None = None,
    multiplier: float | None = None,
    on_lost: Literal["retry", "resume", "fail", "new_job"] | None = None,
    isolation: Isolation = "thread",
    memory_mb: int | None = None,
    version: int = 1,
    migrate: Migrate | None = None,
    batch: int | None = None,
) -> Declaration:
    """Declare a job type by its function, which takes a context and the parameters.

    An async function gets a `RunContext`, another runs in a thread with a `BlockingRunContext`.
    What it returns is the result; or an outcome: `Done`, `Snooze`, `Cancel`. `title` and
    `concurrency` may have parameters in braces; jobs with the same concurrency key run one at a
    time. Jobs of the `aliases`, former names, run as well. `schedule` submits jobs while this code
    is deployed. The limits are those of `[types.NAME]`, which override them.
    With `isolation="process"` a function that is not async runs in a process
    of its own, which is killed at its timeout, and may use `memory_mb` megabytes. `version` is that
    of the parameters: `migrate` gets the payload of a job of an older one, and its version, and
    returns one of today. With `batch` the function gets a sequence of `BatchRun`, at most so many,
    and returns a list with an outcome for each: a result, an outcome or an error. Raises
    ConfigError.
    """
    limits = {
        "timeout": timeout,
        "step_timeout": step_timeout,
        "call_timeout": call_timeout,
        "max_attempts": max_attempts,
        "max_retries": max_retries,
        "base_delay": base_delay,
        "max_delay": max_delay,
        "multiplier": multiplier,
        "on_lost": on_lost,
    }
    settings = {
        "title": title,
        "queue": queue,
        "concurrency": concurrency,
        "aliases": aliases,
        "schedule": schedule,
        "isolation": isolation,
        "memory_mb": memory_mb,
        "version": version,
        "migrate": migrate,
        "batch": batch,
        "limits": {key: value for key, value in limits.items() if value is not None},
    }
    return Declaration(name, settings)


def _checked(parameters: Parameters, template: str | None, setting: str) -> str | None:
    return None if template is None else parameters.check_template(template, setting)


def _limits(name: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return TypeSettings.model_validate(limits).limits()
    except ValidationError as error:
        raise ConfigError(str(field_errors.field_error(error, name))) from None
