"""Web pages of a job: its pull request, ticket, repository and message threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from draftsman.channels import registry
from draftsman.jobs.details.sections.deliveries import target_text

if TYPE_CHECKING:
    from draftsman.deliveries.delivery import Delivery
    from draftsman.jobs.job import Job
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings

Page = tuple[str, str]
"""Title and URL."""


async def pages_of(rt: Runtime, number: int) -> list[Page]:
    """Return the web pages of a job, each URL once."""
    job = await rt.read_model.job(number)
    deliveries = await rt.outbox.all(job.number)
    pages = [*job_pages(job), *message_pages(deliveries, rt.settings)]
    titles = {url: title for title, url in reversed(pages) if is_web_url(url)}
    return [(title, url) for url, title in reversed(titles.items())]


def job_pages(job: Job) -> Iterator[Page]:
    """Yield the pull request, ticket and repository of a job."""
    pr_url = job.pr_url or (job.result or {}).get("pr_url")
    if isinstance(pr_url, str):
        yield "pull request", pr_url
    if job.url:
        yield "ticket", job.url
    source = source_of(job)
    if source is not None and source.startswith("https://"):
        yield "repository", source.removesuffix(".git")


def source_of(job: Job) -> str | None:
    """Return the URL or the folder of the repository of a job."""
    repo = job.payload.get("repo")
    source = repo.get("source") if isinstance(repo, dict) else None
    return source if isinstance(source, str) else None


def message_pages(deliveries: Iterable[Delivery], settings: Settings) -> Iterator[Page]:
    """Yield the page of each target's first message; deliveries come newest first."""
    pages: dict[str, Page] = {}
    for delivery in deliveries:
        channel = registry.find(delivery.channel)
        if channel is None or channel.target is None:
            continue
        if url := channel.target.page(settings, delivery.target, delivery.external_ref):
            pages[target_text(delivery)] = (f"thread in {target_text(delivery)}", url)
    yield from pages.values()


def is_web_url(url: str | None) -> bool:
    """Return whether a user-supplied URL is safe to open in a browser."""
    try:
        split = urlsplit(url or "")
        return split.scheme in ("https", "http") and bool(split.hostname)
    except ValueError:
        return False
