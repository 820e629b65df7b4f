"""Requests and names of jobs, as the client takes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from draftsman.jobs.job import Job
from draftsman.jobs.requests.service.submissions import SubmittedJob

JobName = int | str | UUID | Job | SubmittedJob
"""A job: `142`, `"D-142"`, its id, or the result of `submit` or `get`."""


class RequestOptions(TypedDict, total=False):
    """The fields of a request besides type and payload; docs/python.md explains each."""

    title: str
    key: str
    subject_key: str
    unique: dict[str, Any]
    concurrency_key: str
    queue: str
    priority: int
    run_at: datetime
    delay: float
    max_attempts: int
    max_retries: int
    on_lost: str
    overrides: dict[str, Any]
    tags: Sequence[str]
    notify: Sequence[str]
    after: Sequence[JobName]
    on: str
    group: str | dict[str, str]


class Fields(RequestOptions, total=False):
    """The fields of a request except its text."""

    type: str
    payload: dict[str, Any]
    payload_version: int
    url: str
    agent: str
    repo: str
    ref: str
    mode: str
    skills: Sequence[str]


class Request(Fields, total=False):
    """A request for `submit_many`; `after` may have the `name` of another."""

    text: str
    name: str
