"""The tools of a run about jobs: its own and those that it submits."""

from __future__ import annotations

import json
from typing import Any, Final

from draftsman.agent_runs.mcp.protocol import Tool, ToolError
from draftsman.agent_runs.mcp.run_tools import JOB, MAX_RESULT, object_schema, text_schema
from draftsman.errors import DraftsmanError
from draftsman.handlers.worker_run import WorkerRun
from draftsman.ids import job_name, job_number
from draftsman.questions.question import derived_key

SUBMIT_SETTING: Final = "submit_jobs = true in [agents.NAME]"


class JobTools:
    """Tools about jobs.

    A job is submitted for the same agent, repository and person, so that it may do no more than
    this run; a job that another job submitted submits none, and the database counts those of a job
    over all of its runs, so that their number has a limit.
    """

    def __init__(self, run: WorkerRun, repo: str, *, may_submit: bool) -> None:
        self._run, self._repo, self._may_submit = run, repo, may_submit

    def tools(self) -> list[Tool]:
        """Return the tools."""
        return [
            Tool(
                "submit_job",
                "Submit a job for this agent on this repository. It runs on its own.",
                object_schema(
                    ("text",),
                    text=text_schema("the instructions", 100_000),
                    title=text_schema("a title; default: the first line of the text", 500),
                    key=text_schema("the same key is the same job; default: of the text", 300),
                    mode={"type": "string", "maxLength": 20, "enum": ["fix", "investigate"]},
                ),
                self._submit,
            ),
            Tool(
                "job_status",
                "Return the status and the result of this job, or of a job that it submitted.",
                object_schema((), job=JOB),
                self._status,
                read_only=True,
            ),
        ]

    async def _submit(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if not self._may_submit:
            raise ToolError(f"this agent may not submit jobs; an operator sets {SUBMIT_SETTING}")
        fields = {name: value for name, value in arguments.items() if name != "key"}
        fields |= {"agent": self._run.job.agent, "repo": self._repo}
        key = arguments.get("key") or derived_key("job", (arguments["text"],))
        workflows = self._run.services.workflows
        spawn = workflows.spawn
        try:
            if await self._run.wait(workflows.is_spawned, self._run.job):
                raise ToolError("a job that another job submitted submits no jobs")
            number = await self._run.wait(spawn, self._run.job, f"mcp:{key}", "run_agent", fields)
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        return {"job": job_name(number)}, f"{job_name(number)} is submitted"

    async def _status(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
        own = self._run.job
        data: dict[str, Any] = {"job": own.name, "status": "running", "title": own.ticket_title}
        try:
            name = arguments.get("job", own.name)
            if (number := job_number(name)) is None:
                raise ToolError(f"{name!r} is not a job; use a name such as {own.name}")
            if number != own.number:
                job = await self._run.wait(self._run.services.workflows.spawned, own, number)
                data = {"job": job.name, "status": str(job.status), "title": job.title}
                result = json.dumps(job.result, ensure_ascii=False)
                fits = len(result) <= MAX_RESULT
                data |= (
                    {"result": job.result} if fits else {"result_truncated": result[:MAX_RESULT]}
                )
                data["error"] = job.error
        except DraftsmanError as error:
            raise ToolError(str(error)) from None
        data = {name: value for name, value in data.items() if value not in (None, "")}
        return data, json.dumps(data, ensure_ascii=False)
