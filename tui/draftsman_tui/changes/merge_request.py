"""Request for the merge of a job's pull request, by the command line and the dashboard."""

from __future__ import annotations

from typing import Final

from draftsman.errors import CommandHint, Refused
from draftsman.ids import job_name
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.runtime import Runtime

TYPE: Final = "merge_pull_request"


async def published_pull_request(rt: Runtime, number: int) -> tuple[int, str]:
    """Return the pull request of a job, and the follow-up or job that published its newest work.

    Raises Refused for a job without a pull request, and after its end.
    """
    from draftsman.forges.pull_request import recorded

    opened = recorded(await rt.checkpoints.steps(number))
    if opened is None or "url" not in opened:
        name = job_name(number)
        problem = "it opened none on a forge of [forges]" if opened is None else opened["problem"]
        raise Refused(
            f"{name} has no pull request to merge: {problem}", hint=CommandHint("show", name)
        )
    family = await rt.forge_events.follow_ups.family(number)
    if family is not None and family.pull.state != "open":
        is_merged = family.pull.state == "merged"
        state = "is merged already" if is_merged else "is closed: open it again on the forge first"
        raise Refused(f"{opened['url']} {state}", hint=CommandHint("show", job_name(number)))
    for later in reversed(family.jobs if family is not None else ()):
        newer = recorded(await rt.checkpoints.steps(later))
        if later > number and newer is not None and newer.get("url") == opened["url"]:
            return later, str(opened["url"])
    return number, str(opened["url"])


async def request_merge(rt: Runtime, number: int, url: str) -> SubmittedJob:
    """Submit the job that merges the pull request of a job after an approval."""
    from draftsman.deliveries.target import Target
    from draftsman.jobs.requests.service.submissions import invocation

    name = job_name(number)
    targets = await rt.outbox.targets(number)
    request = invocation(
        type=TYPE,
        payload={"job": number},
        queue=(await rt.read_model.job(number)).queue,
        title=f"Merge the pull request of {name}",
        url=url,
        subject_key=f"{TYPE}:{name}",
        notify=tuple(Target(row.channel, row.target, row.thread).name for row in targets),
    )
    await rt.request_checks.check(request, chats=False)
    return await rt.submissions.submit(request, await rt.actor())
