"""What the descriptions of job types decide about requests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from draftsman.errors import UsageError
from draftsman.job_types.published.description import TypeDescription
from draftsman.job_types.published.service import PublishedTypes
from draftsman.jobs.job import OnLost
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.insertion import NewRequest
from draftsman.jobs.retries import BUILT_IN
from draftsman.jobs.runs.job_limits import JobLimits

MAX_KEY: Final = 500
"""Characters of a concurrency key."""
_SUBMITTED: Final = ("max_attempts", "max_retries", "on_lost")
"""Limits that are fixed when a job is submitted."""


async def apply_descriptions(
    batch: Sequence[NewRequest], published: PublishedTypes, limits: JobLimits
) -> None:
    """Check the payloads of described types, and set what their requests do not say themselves.

    Raises InvalidParameters, and UsageError for a concurrency key that is too long.
    """
    names = {request.invocation.type for request in batch} - BUILT_IN.keys()
    for name, type in (await published.of(names)).items() if names else ():
        requests = [request for request in batch if request.invocation.type == name]
        payloads = [request.payloads or [request.invocation.payload] for request in requests]
        await published.check(type, [*chain.from_iterable(payloads)])
        for request in requests:
            request.invocation = _with_defaults(request.invocation, type, limits)


def _with_defaults(request: Invocation, type: TypeDescription, limits: JobLimits) -> Invocation:
    """Return the request with the defaults of its type.

    The limits and the concurrency key of the configuration override those of the code.
    """
    defaults = type.defaults(request.payload)
    if "queue" in request.model_fields_set:
        defaults.pop("queue", None)
    if request.type in limits.concurrency_keys:
        defaults.pop("concurrency_key", None)
    if len(defaults.get("concurrency_key", "")) > MAX_KEY:
        raise UsageError(
            f"payload of {type.name}: the concurrency key {type.concurrency!r} of the type is"
            f" longer than {MAX_KEY} characters with these parameters"
        )
    if type.payload_version != 1:
        defaults["payload_version"] = type.payload_version
    set_elsewhere = limits.configured.get(request.type, {}).keys() | request.overrides.keys()
    for limit in _SUBMITTED:
        if limit in type.limits and limit not in set_elsewhere:
            value = type.limits[limit]
            defaults[limit] = OnLost(value) if limit == "on_lost" else value
    unset = {
        name: value
        for name, value in defaults.items()
        if name == "queue" or getattr(request, name) is None
    }
    return request.model_copy(update=unset) if unset else request
