"""Known values of filters: a typo in a value is named where a list is empty."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from draftsman.formats.invisible import one_line
from draftsman.formats.near_names import did_you_mean

if TYPE_CHECKING:
    from draftsman.jobs.job_summary import JobFilters
    from draftsman.runtime import Runtime

MAX_SHOWN: Final = 60
"""Characters of an unknown value that its sentence has."""
MAX_KNOWN: Final = 12
"""Known values that the sentence lists if no name is near."""


@dataclass(frozen=True, slots=True)
class FilterValues:
    """How the values of a filter are known. Each is read only for a list that is empty."""

    noun: str
    """What a value is, as in `no queue 'defalt'`."""
    read: Callable[[Runtime, str], Awaitable[Iterable[str]]]
    """Reads a bounded number of known values, with this value if it is known otherwise."""
    jobs: Callable[[str], JobFilters] | None = None
    """Selects the jobs of a value: it is known if there is one."""
    any_case: bool = False
    """Whether the filter ignores case."""

    async def unknown(self, rt: Runtime, value: str, seen: Collection[str]) -> str:
        """Return the sentence about a value that nothing has; "" if something has it."""
        known = {*await self.read(rt, value)}
        if value in known or value.casefold() in {name.casefold() for name in seen}:
            return ""
        if self.any_case and value.casefold() in {name.casefold() for name in known}:
            return ""
        if self.jobs is not None:
            filters: JobFilters = {**self.jobs(value), "limit": 1}
            page = await rt.read_model.page(**filters)
            if page.jobs or page.scanned_to is not None:
                return ""
        near = did_you_mean(value, known)
        if not near and 0 < len(known) <= MAX_KNOWN:
            near = f"; known: {', '.join(sorted(known))}"
        return f"no {self.noun} {one_line(value)[:MAX_SHOWN]!r}{near}"


async def unknown_value(
    rt: Runtime, filters: Mapping[str, Any], seen: Mapping[str, Collection[str]] | None = None
) -> str:
    """Return the sentence about the first value of a filter that nothing known has; "" for none.

    For a list that is empty. `filters` are by the names of options, fields or `JobFilters`; `seen`
    has values of rows that another filter left out.
    """
    for name, value in filters.items():
        spec = FILTER_VALUES.get(NAMES.get(name, name))
        if spec is None or not value:
            continue
        for item in (value,) if isinstance(value, str) else value:
            if sentence := await spec.unknown(rt, item, (seen or {}).get(name, ())):
                return sentence
    return ""


async def _sources(rt: Runtime, value: str) -> Iterable[str]:
    return await rt.read_model.sources()


async def _agents(rt: Runtime, value: str) -> Iterable[str]:
    return [*rt.settings.agents, *await rt.read_model.newest_values("agent")]


async def _repos(rt: Runtime, value: str) -> Iterable[str]:
    catalog = await rt.repos.catalog()
    registered = [location.name for location in catalog.locations]
    return [*registered, *await rt.read_model.newest_values("repo")]


async def _types(rt: Runtime, value: str) -> Iterable[str]:
    known = {name for type in await rt.request_checks.unknown_types([value]) for name in type.known}
    return [*(known or {value}), *await rt.read_model.newest_values("type")]


async def _queues(rt: Runtime, value: str) -> Iterable[str]:
    if await rt.queues.is_used(value):
        return [value]
    return [*rt.request_checks.queue_names, *(queue.name for queue in await rt.queues.all())]


async def _tags(rt: Runtime, value: str) -> Iterable[str]:
    tags = await rt.read_model.newest_values("tag")
    return [name for tag in tags for name in (tag, tag.partition("=")[0])]


async def _groups(rt: Runtime, value: str) -> Iterable[str]:
    return [group.name for group in await rt.workflows.groups.all()]


async def _people(rt: Runtime, value: str) -> Iterable[str]:
    invokers = await rt.read_model.newest_values("invoker")
    own = () if rt.viewer is None else (rt.viewer.name, rt.viewer.voter)
    names = (name for id in invokers for name in (id, id.rpartition(":")[2]))
    return [*rt.policy.people, *own, *names]


async def _responders(rt: Runtime, value: str) -> Iterable[str]:
    return [*rt.policy.groups, *await _people(rt, value), ANYBODY, ME]


ANYBODY: Final = "anybody"
"""Responder of a question without designated responders."""
ME: Final = "me"
"""The current user in `by:me`, and a responder of rows that wait for the user."""
NAMES: Final = {"tags": "tag", "invoker": "by", "responders": "for"}
"""The filters of other names for the same values."""
FILTER_VALUES: Final[Mapping[str, FilterValues]] = {
    "source": FilterValues("source", _sources),
    "agent": FilterValues("agent", _agents, lambda value: {"agent": value}),
    "repo": FilterValues("repository", _repos, lambda value: {"repo": value}, any_case=True),
    "type": FilterValues("job type", _types, lambda value: {"type": value}),
    "queue": FilterValues("queue", _queues, lambda value: {"queue": value}),
    "group": FilterValues("group", _groups, lambda value: {"group": value}),
    "tag": FilterValues("tag", _tags, lambda value: {"tags": (value,)}),
    "by": FilterValues("person", _people, lambda value: {"invoker": value}, any_case=True),
    "for": FilterValues("person or group", _responders, any_case=True),
}
"""By the name of the filter."""
OTHER_FILTERS: Final[Mapping[str, str]] = {
    "status": "A fixed set: another value is refused with near names.",
    "kind": "A fixed set: another value is refused with near names.",
    "job": "An unknown job is refused.",
    "key": "Programs choose keys, and each is another: near keys are of other jobs.",
    "age": "A time.",
}
"""The filters whose values need no such check, with the reason."""
