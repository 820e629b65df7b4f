"""Web pages of a job: its pull request, ticket, repository and message threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from draftsman.deliveries.delivery import ChannelName, Delivery
from draftsman.deliveries.target import IssueTarget
from draftsman.jobs.details.sections.deliveries import target_text

if TYPE_CHECKING:
    from draftsman.jobs.job import Job
    from draftsman.runtime import Runtime
    from draftsman.settings.forges import ForgeSettings

Page = tuple[str, str]
"""Title and URL."""


async def pages_of(rt: Runtime, number: int) -> list[Page]:
    """Return the web pages of a job, each URL once."""
    job = await rt.read_model.job(number)
    deliveries = await rt.outbox.all(job.number)
    slack = rt.settings.slack
    team = slack.team if slack else None
    pages = [*job_pages(job), *message_pages(deliveries, team, rt.settings.forges)]
    titles = {url: title for title, url in reversed(pages) if is_web_url(url)}
    return [(title, url) for url, title in reversed(titles.items())]


def job_pages(job: Job) -> Iterator[Page]:
    """Yield the pull request, ticket and repository of a job."""
    pr_url = job.pr_url or (job.result or {}).get("pr_url")
    if isinstance(pr_url, str):
        yield "pull request", pr_url
    if job.ticket_url:
        yield "ticket", job.ticket_url
    repo = job.payload.get("repo")
    source = repo.get("source") if isinstance(repo, dict) else None
    if isinstance(source, str) and source.startswith("https://"):
        yield "repository", source.removesuffix(".git")


def message_pages(
    deliveries: Iterable[Delivery],
    team: str | None = None,
    forges: Mapping[str, ForgeSettings] | None = None,
) -> Iterator[Page]:
    """Yield the page of each target's first message; deliveries come newest first."""
    pages: dict[str, Page] = {}
    for delivery in deliveries:
        if url := _message_url(delivery, team, forges or {}):
            pages[target_text(delivery)] = (f"thread in {target_text(delivery)}", url)
    yield from pages.values()


def _message_url(
    delivery: Delivery, team: str | None, forges: Mapping[str, ForgeSettings]
) -> str | None:
    """Return the URL of a message; Slack's redirects a signed-in user to it."""
    match delivery.channel:
        case ChannelName.SLACK if delivery.external_ref:
            channel, _, ts = delivery.external_ref.partition("/")
            fields = {"channel": channel, "message_ts": ts, "team": team}
            query = {name: value for name, value in fields.items() if value}
            return f"https://slack.com/app_redirect?{urlencode(query)}"
        case ChannelName.TRELLO:
            anchor = f"#comment-{quote(delivery.external_ref)}" if delivery.external_ref else ""
            return f"https://trello.com/c/{quote(delivery.target)}{anchor}"
        case ChannelName.FORGE:
            return _comment_url(delivery, forges)
        case _:
            return None


def _comment_url(delivery: Delivery, forges: Mapping[str, ForgeSettings]) -> str | None:
    """Return the URL of a comment, on a forge that this process knows."""
    issue = IssueTarget.of(delivery.target)
    table = forges.get(issue.forge)
    if table is None or not table.usable:
        return None
    page = table.plugin.page_of(issue.number, delivery.external_ref, is_pull=issue.is_pull)
    return f"{table.url}/{quote(issue.path)}/{page}"


def is_web_url(url: str | None) -> bool:
    """Return whether a user-supplied URL is safe to open in a browser."""
    try:
        split = urlsplit(url or "")
        return split.scheme in ("https", "http") and bool(split.hostname)
    except ValueError:
        return False
