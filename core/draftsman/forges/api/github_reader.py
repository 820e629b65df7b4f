"""Events of a repository on GitHub: https://docs.github.com/en/rest, version 2022-11-28."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from draftsman.forges import github_events
from draftsman.forges.api.api_reader import LOG_END, ApiReader
from draftsman.forges.api.rest_api import PAGE
from draftsman.forges.checks import STATUS_NAME, CheckState, check_of
from draftsman.forges.ci_log import relevant_part
from draftsman.forges.forge_event import (
    EventKind,
    ForgeEvent,
    Labeling,
    account_id,
    fields,
    is_edited,
    moment,
    plain,
)

_PULL: Final = re.compile(r"/pulls?/\d+#")
"""Part of the URL of a comment on a pull request."""


class GitHubReader(ApiReader):
    """The events of a repository on GitHub."""

    async def pull(self, number: int) -> list[ForgeEvent]:
        data = await self._reads.get(self._api, f"{self._path}/pulls/{number}")
        if (ended := github_events.ended(self._project, data)) is not None:
            return [ended]
        events = await self.written(number)
        if data.get("mergeable_state") == "dirty":
            events.append(github_events.conflict(self._project, data))
        return events + await self._failed(number, str(data["head"]["sha"]))

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        path = f"{self._path}/issues"
        issues = await self._list(path, None, labels=label, state="open")
        return await self._labels.events(
            github_events.labeled_issue(self._project, item, label, {})
            for item in issues
            if "pull_request" not in item
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        return labelings_of(await self._list(f"{self._path}/issues/{number}/events"), label)

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        items = await self._api.pages(
            f"{self._path}/issues/comments", since=written(since), per_page=PAGE
        )
        return issue_comments(self._project, items)

    async def written(self, number: int) -> list[ForgeEvent]:
        comments = await self._list(f"{self._path}/issues/{number}/comments")
        reviews = await self._list(f"{self._path}/pulls/{number}/reviews")
        threads = await self._list(f"{self._path}/pulls/{number}/comments")
        kind = EventKind.COMMENT
        return [
            *(
                github_events.comment(self._project, number, item, kind)
                for item in comments
                if not is_edited(item)
            ),
            *(github_events.review(self._project, number, item) for item in reviews),
            *(
                github_events.thread_comment(self._project, number, item)
                for item in threads
                if not is_edited(item)
            ),
        ]

    async def _failed(self, number: int, head: str) -> list[ForgeEvent]:
        """Return the checks of a commit that failed, with the relevant part of their logs."""
        path = f"{self._path}/commits/{head}"
        events = []
        for run in await self._list(f"{path}/check-runs", "check_runs"):
            result = run["conclusion"] if run["status"] == "completed" else ""
            if check_of(run["name"], result).state is CheckState.FAILED:
                key = f"check:{run['id']}:{run['conclusion']}"
                if key not in self._logs:
                    self._logs[key] = await self._check_run(number, head, key, run)
                events.append(self._logs[key])
        for status in await self._list(f"{path}/status", "statuses"):
            name = str(status["context"])
            if name != STATUS_NAME and check_of(name, status["state"]).state is CheckState.FAILED:
                events.append(failed_status(self._project, number, head, name, status))
        return events

    async def _check_run(
        self, number: int, head: str, key: str, run: Mapping[str, Any]
    ) -> ForgeEvent:
        output = fields(run.get("output"))
        parts = [str(output.get(name) or "") for name in ("title", "summary", "text")]
        if fields(run.get("app")).get("slug") == "github-actions":
            # the id of a check run of Actions is that of its job
            log = await self._api.text(f"{self._path}/actions/jobs/{run['id']}/logs", LOG_END)
            parts.append(relevant_part(log))
        return ForgeEvent(
            EventKind.CHECK_FAILED,
            self._project,
            number,
            key,
            title=str(run["name"]),
            text=plain("\n".join(part for part in parts if part)),
            commit=head,
            url=str(run.get("html_url") or "") or None,
        )


def labelings_of(events: Sequence[Any], label: str) -> list[Labeling]:
    """Return the events of GitHub, or of Gitea's timeline, that gave a label.

    The body of an event of Gitea is `1` for a label that was given, else empty.
    """
    return [
        Labeling(
            str(item["id"]),
            str(fields(item.get("actor") or item.get("user")).get("login") or ""),
            moment(item.get("created_at")),
            account_id(fields(item.get("actor") or item.get("user"))),
        )
        for item in events
        if (
            item.get("event") == "labeled" or (item.get("type"), item.get("body")) == ("label", "1")
        )
        and str(fields(item.get("label")).get("name")).casefold() == label.casefold()
    ]


def issue_comments(project: str, items: Sequence[Mapping[str, Any]]) -> list[ForgeEvent]:
    """Return the events of the comments of a repository that are on issues."""
    kind = EventKind.ISSUE_COMMENT
    return [
        github_events.comment(project, int(str(item["issue_url"]).rpartition("/")[2]), item, kind)
        for item in items
        if item.get("issue_url")
        and not _PULL.search(str(item.get("html_url")))
        and not is_edited(item)
    ]


def written(when: datetime) -> str:
    """Return a time as a parameter of the API."""
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def failed_status(
    project: str, number: int, head: str, name: str, status: Mapping[str, Any]
) -> ForgeEvent:
    """Return the event of a commit status that failed; it has no log."""
    word = status.get("state") or status.get("status")
    return ForgeEvent(
        EventKind.CHECK_FAILED,
        project,
        number,
        f"status:{head}:{name}:{status.get('id') or word}",
        title=name,
        text=plain(status.get("description")),
        commit=head,
        url=str(status.get("target_url") or "") or None,
    )
