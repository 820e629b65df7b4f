"""Events of a project on GitLab: https://docs.gitlab.com/api/rest/, version 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from draftsman.forges import gitlab_events
from draftsman.forges.api.api_reader import LOG_END, ApiReader
from draftsman.forges.api.github_reader import written
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


class GitLabReader(ApiReader):
    """The events of a project on GitLab."""

    async def pull(self, number: int) -> list[ForgeEvent]:
        path = f"{self._path}/merge_requests/{number}"
        data = await self._reads.get(self._api, path)
        if (ended := gitlab_events.ended(self._project, data)) is not None:
            return [ended]
        events = await self.written(number)
        if data.get("has_conflicts"):
            events.append(gitlab_events.conflict(self._project, data))
        return events + await self._failed(number, str(data["sha"]))

    async def written(self, number: int) -> list[ForgeEvent]:
        path = f"{self._path}/merge_requests/{number}/discussions"
        return [
            gitlab_events.note(self._project, number, note, str(item["id"]), note.get("author"))
            for item in await self._list(path)
            for note in item["notes"]
            if not (note.get("system") or is_edited(note))
        ]

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        issues = await self._list(f"{self._path}/issues", labels=label, state="opened")
        return await self._labels.events(
            gitlab_events.labeled_issue(self._project, item, label, {}) for item in issues
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        path = f"{self._path}/issues/{number}/resource_label_events"
        return [
            Labeling(
                str(item["id"]),
                str(fields(item.get("user")).get("username") or ""),
                moment(item.get("created_at")),
                account_id(fields(item.get("user"))),
            )
            for item in await self._list(path)
            if item.get("action") == "add"
            and str(fields(item.get("label")).get("name")).casefold() == label.casefold()
        ]

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        """Read the notes of issues that changed: GitLab has no list of all notes of a project."""
        path, after = f"{self._path}/issues", written(since)
        changed = await self._api.pages(path, updated_after=after, state="all", per_page=PAGE)
        known, since = set(numbers), since.replace(microsecond=0)
        found = []
        for number in sorted(known | {int(item["iid"]) for item in changed}):
            for note in await self._list(f"{path}/{number}/notes", sort="asc"):
                is_new = number in known or (moment(note.get("created_at")) or since) >= since
                if is_new and not (note.get("system") or is_edited(note)):
                    by = note.get("author")
                    found.append(gitlab_events.issue_note(self._project, number, note, by))
        return found

    async def _failed(self, number: int, head: str) -> list[ForgeEvent]:
        """Return the jobs of a commit that failed, with the relevant part of their logs."""
        path = f"{self._path}/repository/commits/{head}/statuses"
        events = []
        for status in await self._list(path):
            failed = check_of(status["name"], status["status"]).state is CheckState.FAILED
            if not failed or status.get("allow_failure") or status["name"] == STATUS_NAME:
                continue
            key = f"check:{status['id']}:{status['status']}"
            if key not in self._logs:
                self._logs[key] = await self._job(number, head, key, status)
            events.append(self._logs[key])
        return events

    async def _job(self, number: int, head: str, key: str, status: Mapping[str, Any]) -> ForgeEvent:
        # the id of a status of GitLab's own CI is that of its job
        log = await self._api.text(f"{self._path}/jobs/{status['id']}/trace", LOG_END)
        parts = [str(fields(status).get("description") or ""), relevant_part(log)]
        return ForgeEvent(
            EventKind.CHECK_FAILED,
            self._project,
            number,
            key,
            title=str(status["name"]),
            text=plain("\n".join(part for part in parts if part)),
            commit=head,
            url=str(status.get("target_url") or "") or None,
        )
