"""What a job is about: a repository that was named, that is found, or that people are asked for.

What was found is recorded as a step, so that all runs of the job work on the same one however the
labels are mapped meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from draftsman.domain.invocation import RepoResolution
from draftsman.domain.question import Answered, Choice
from draftsman.domain.repos.repo_catalog import (
    CONFIDENCE,
    AmbiguousRepo,
    Label,
    Repo,
    RepoLocation,
    ResolvedRepo,
    repo_names_by_source,
)
from draftsman.domain.reserved_names import Owner
from draftsman.errors import Failure, NotFound, UsageError
from draftsman.handlers.context import RunContext
from draftsman.handlers.db_retry import wait_for_database
from draftsman.handlers.question_mapping import build_ask
from draftsman.services.repos import Repos, SavedProfile

T = TypeVar("T")
STEP: Final = "agent:repository"
"""The step that pins it, and the key of the question."""
MAX_ROUNDS: Final = 5
"""Answers that name nothing, after which the job fails."""
QUESTION: Final = "Which repository is this about?"
MAX_CHOICE_LENGTH: Final = 150
"""Characters of a choice."""
MAX_CHOICES: Final = 500
"""Choices of one question."""


@dataclass(frozen=True, slots=True)
class JobRepository:
    """The repository of a job, and how it was found."""

    source: str
    ref: str | None
    place: RepoLocation
    method: str
    confidence: float
    saved: SavedProfile | None

    @property
    def pinned(self) -> dict[str, Any]:
        """Return what is recorded, for later runs and for a retry of the job."""
        record = {"source": self.source, "method": self.method, "confidence": self.confidence}
        return record | {"path": self.place.path}

    def as_event(self, base_sha: str) -> dict[str, Any]:
        """Return the payload of `repo_resolved`."""
        repo, path = self.place.repo, self.place.path
        how: dict[str, Any] = {"method": self.method, "confidence": self.confidence}
        found = {"source": self.source, "base_sha": base_sha, **how}
        found |= {"owner": repo.owner, "name": repo.name}
        return found | ({"path": path} if path else {})


async def resolve_repository(ctx: RunContext, saved: dict[str, Any] | None) -> JobRepository:
    """Return the repository of the job; parks while people are asked.

    `saved` is what a checkpoint keeps of it: a retry of the job goes on with the same. Raises
    Failure where nothing is known that could be chosen.
    """
    asked = ctx.job.payload.get("repo")
    asked = asked if isinstance(asked, dict) else {}
    ref = asked.get("ref")
    if source := asked.get("source"):
        how = RepoResolution.model_validate(
            {k: asked[k] for k in RepoResolution.model_fields if k in asked}
        )
        pinned = {"source": str(source), **how.model_dump()}
        return await _known(ctx, pinned, ref)
    found = await _known(ctx, saved or await _pinned(ctx), ref)
    if ctx.job.repo_name is None:
        await assign(ctx, found.place.repo)
    return found


async def assign(ctx: RunContext, repo: Repo) -> None:
    """Let the job be about this repository, for whoever lists jobs; raises LeaseLost."""
    await _wait(ctx, lambda repos: repos.assign(ctx.job.lease, repo))


async def _pinned(ctx: RunContext) -> dict[str, Any]:
    """Return the record of what was found; the first run that knows writes it."""
    steps = await ctx.steps(Owner.WORKER)
    if STEP in steps and steps[STEP].status == "done":
        return dict(steps[STEP].result)
    found = await _resolve(ctx)
    how: dict[str, Any] = {"method": found.method, "confidence": found.confidence}
    record = {"source": found.repo.remote_url, **how, "path": found.path}
    return dict(await ctx.worker_step(STEP, lambda _: record))


async def _resolve(ctx: RunContext) -> ResolvedRepo:
    text = "\n".join(filter(None, (ctx.job.ticket_title, ctx.job.ticket_text)))
    labels = list(_labels(ctx.job.payload.get("labels")))
    found = await _wait(ctx, lambda repos: repos.resolve(labels=labels, text=text))
    if isinstance(found, ResolvedRepo):
        return found
    if not found.choices:
        raise Failure(
            "run_agent needs a repository; submit it with: --repo PATH or URL, or make one known:"
            " draftsman repos add",
            origin="agent",
            declared="PERMANENT",
        )
    return await _ask(ctx, found)


async def _ask(ctx: RunContext, unsure: AmbiguousRepo) -> ResolvedRepo:
    """Ask until an answer names one; an answer counts also if the choices are others by now."""
    why = ""
    for turn in range(1, MAX_ROUNDS + 1):
        key = STEP if turn == 1 else f"{STEP}:{turn}"
        answer = (await ctx.answers()).get(key)
        if answer is None:
            choices = tuple(_choices(unsure.choices))
            asked = build_ask(key=key, text=f"{why}{QUESTION}", choices=choices, freeform=True)
            answer = await ctx.ask_or_park(asked)
        if not isinstance(answer, Answered):
            break
        found = await _named(ctx, answer.value or answer.text or "")
        if isinstance(found, ResolvedRepo):
            return found
        why = f"{found[:1].upper()}{found[1:]}\n\n"
    text = f"no repository was named in {MAX_ROUNDS} answers; submit it again with --repo"
    raise Failure(text, origin="agent", declared="PERMANENT")


async def _named(ctx: RunContext, name: str) -> ResolvedRepo | str:
    """Return the repository that an answer names, or why it names none."""
    try:
        found = await _wait(ctx, lambda repos: repos.resolve(explicit=name.strip() or "-"))
    except (NotFound, UsageError) as error:
        return str(error)
    if isinstance(found, AmbiguousRepo):
        names = ", ".join(_name(place, qualified=True) for place in found.choices)
        return f"that may be several: {names}."
    if found.repo.id is None and not found.repo.host:
        return "a folder of a worker cannot be named here; name what is known, or give a URL."
    return ResolvedRepo(found.repo, CONFIDENCE["asked"], "asked", found.path)


async def _known(ctx: RunContext, pinned: dict[str, Any], ref: str | None) -> JobRepository:
    """Return what is known of the repository that is recorded."""
    source = str(pinned["source"])
    path = str(pinned.get("path") or "")
    repo = await _wait(ctx, lambda repos: _look_up(repos, source))
    if repo is None:
        repo = _unknown(source)
    place = RepoLocation(repo, path)
    saved = await _wait(ctx, lambda repos: repos.profile(place))
    method, confidence = str(pinned["method"]), float(pinned["confidence"])
    return JobRepository(source, ref or repo.default_branch, place, method, confidence, saved)


def _unknown(source: str) -> Repo:
    owner, name = repo_names_by_source((), [source])[source]
    return Repo(None, "", owner or "", name, source)


async def _look_up(repos: Repos, source: str) -> Repo | None:
    try:
        return await repos.known(source)
    except UsageError:  # a place that git understands and we do not
        return None


def _choices(places: Iterable[RepoLocation]) -> Iterable[Choice]:
    """Yield a choice for each place; two of the same name say their host."""
    places = list(places)
    names = [place.name.casefold() for place in places]
    seen: set[str] = set()
    for place in places:
        value = _name(place, qualified=names.count(place.name.casefold()) > 1)
        if (
            len(value) <= MAX_CHOICE_LENGTH
            and value.casefold() not in seen
            and len(seen) < MAX_CHOICES
        ):
            seen.add(value.casefold())
            where = None if place.repo.remote_url.startswith("/") else place.repo.remote_url
            yield Choice(value=value, description=where and where[:500])


def _name(place: RepoLocation, *, qualified: bool) -> str:
    return f"{place.repo.host}/{place.name}".lstrip("/") if qualified else place.name


def _labels(given: Any) -> Iterable[Label]:
    for label in given if isinstance(given, list) else ():
        if isinstance(label, list) and len(label) == 2:
            yield str(label[0]), str(label[1])


async def _wait(ctx: RunContext, call: Callable[[Repos], Awaitable[T]]) -> T:
    """Await a call of the service, once there is a database."""
    worker = ctx.settings.worker
    return await wait_for_database(
        ctx.job.name, lambda: call(ctx.repos), worker, lambda: ctx.cancelled
    )
