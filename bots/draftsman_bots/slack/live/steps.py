"""Texts of live threads: the status, and the chunks of a stream. Pure.

Slack does not say whether these texts are parsed, so they contain no `<` and `>`: without these
there is neither a mention nor a hidden link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from draftsman.agent_runs.activity.activity import ActivityState
from draftsman.agent_runs.activity.live_thread import LiveProgress, LiveThread
from draftsman.jobs.job import TERMINAL, WAITING, Status
from draftsman.jobs.status_display import STATUSES
from draftsman_bots.slack.deliveries.blocks import Block, context, section
from draftsman_bots.slack.deliveries.mrkdwn import escape_truncated
from draftsman_bots.text import truncate

MAX_STATUS: Final = 100
"""Characters of a status; Slack documents no limit."""
MAX_TITLE: Final = 120
"""Characters of the title of a step; Slack allows 256."""
MAX_STEPS: Final = 30
"""Steps of a stream."""
MAX_BYTES: Final = 5000
"""Bytes of all titles: Slack limits the message to a size that it does not document, which users
measured as about 10,000 bytes."""
MIN_TITLE: Final = 20
PLAN: Final = "plan"
NOW: Final = "now"
"""The task that shows the newest line of the activity."""
STATES: Final[Mapping[str, str]] = {
    ActivityState.PENDING: "pending",
    ActivityState.RUNNING: "in_progress",
    ActivityState.COMPLETED: "complete",
    ActivityState.FAILED: "error",
}
ENDINGS: Final[Mapping[Status, str]] = {
    Status.COMPLETED: "complete",
    **dict.fromkeys(WAITING, "pending"),
    **dict.fromkeys(TERMINAL - {Status.COMPLETED}, "error"),
    Status.RETRYING: "error",
}
"""The state of the steps that were in progress when the run ended, by the status of its job."""
UNFINISHED: Final = {
    "in_progress": (" (not finished)", "error"),
    "pending": (" (waited for a decision)", "complete"),
}
"""What the last call of a run says that did not end, and its state."""
INTERRUPTED: Final = ("is interrupted", "pending")
CONTINUED: Final = ("continues: see the status message", "pending")
"""The end of a stream before the end of its run."""
_MARKS: Final = {
    "complete": STATUSES[Status.COMPLETED].emoji_code,
    "error": STATUSES[Status.FAILED].emoji_code,
}

Steps = dict[str, Any]
"""Title and state of each task by its id; the plan has no state."""


def status_line(thread: LiveThread, progress: LiveProgress) -> str:
    """Return the status, which Slack shows after the name of the app."""
    activity = progress.line or progress.plan or thread.title
    return _plain(f"is working on {thread.name}: {activity}", MAX_STATUS)


def session_title(thread: LiveThread) -> str:
    """Return the title of a session of Slack."""
    return _plain(f"{thread.name}: {thread.title}", MAX_TITLE)


def steps_of(thread: LiveThread, progress: LiveProgress) -> Steps:
    """Return the tasks that the stream of a run shows: the steps of the plan, and the newest line.

    A step that left the plan is complete, as a task cannot be removed.
    """
    tasks: Steps = {PLAN: [_headline(thread, _count(progress.plan)), ""]}
    titles = _fitting([text for text, _ in progress.steps[:MAX_STEPS]])
    for number, (title, (_, state)) in enumerate(zip(titles, progress.steps, strict=False), 1):
        tasks[f"step-{number}"] = [title, STATES.get(state, "pending")]
    for id, (title, _) in thread.shown.items():
        if id not in (*tasks, NOW):
            tasks[id] = [title if title.startswith("dropped") else _drop(title), "complete"]
    if progress.line:
        title, state = progress.newest
        tasks[NOW] = [_plain(title, MAX_TITLE), STATES.get(state, "in_progress")]
    elif NOW in thread.shown:
        tasks[NOW] = thread.shown[NOW]
    return tasks


def ended(thread: LiveThread, progress: LiveProgress) -> Steps:
    """Return the tasks of a stream that ends, by its last progress and the status of its job.

    A call of a tool does not outlive its run: it is done, or was not finished.
    """
    newest = steps_of(thread, progress) if progress else thread.shown
    text, state = CONTINUED if thread.is_running else _ending(thread.job_status)
    tasks: Steps = {PLAN: [_headline(thread, text), ""]}
    for id, (title, before) in newest.items():
        if id == NOW and before in UNFINISHED and state == "pending" and not thread.is_running:
            end, done = UNFINISHED[before]
            tasks[id] = [f"{truncate(title, MAX_TITLE - len(end))}{end}", done]
        elif id != PLAN:
            is_going_on = before == "in_progress" or (id == NOW and before in UNFINISHED)
            tasks[id] = [title, state if is_going_on else before]
    return tasks


def _ending(status: Status) -> tuple[str, str]:
    if status not in ENDINGS:
        return INTERRUPTED
    return STATUSES[status].predicate, ENDINGS[status]


def changed(tasks: Steps, visible: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the chunks of the tasks that differ from the visible ones; each replaces its task."""
    return [
        {"type": "plan_update", "title": title}
        if id == PLAN
        else {"type": "task_update", "id": id, "title": title, "status": state}
        for id, (title, state) in tasks.items()
        if visible.get(id) != [title, state]
    ]


def summary(tasks: Steps) -> tuple[str, list[Block]]:
    """Return text and blocks that replace a stream that Slack closed by itself."""
    title = tasks[PLAN][0]
    lines = "\n".join(_lines(tasks))
    blocks = [section(f"*{escape_truncated(title, 300)}*")]
    return title, [*blocks, context(lines)] if lines else blocks


def _lines(tasks: Steps) -> Iterator[str]:
    length = 0
    for id, (title, state) in tasks.items():
        line = f"{_MARKS.get(state, ':white_circle:')} {escape_truncated(title, MAX_TITLE)}"
        length += len(line) + 1
        if id != PLAN and length < 1900:  # a text of a context block has at most 2,000
            yield line


def _fitting(texts: list[str]) -> list[str]:
    """Return the texts as titles whose bytes fit into a stream together."""
    length = MAX_TITLE
    while True:
        titles = [_plain(text, length) for text in texts]
        if length <= MIN_TITLE or sum(len(title.encode()) for title in titles) <= MAX_BYTES:
            return titles
        length -= MIN_TITLE


def _headline(thread: LiveThread, text: str) -> str:
    return _plain(f"{thread.name} {thread.title}", MAX_TITLE) + (f" \u00b7 {text}" if text else "")


def _count(plan: str) -> str:
    """Return `3 of 7 steps` of a plan in a line."""
    return plan.partition(":")[0]


def _drop(title: str) -> str:
    return truncate(f"dropped: {title}", MAX_TITLE)


def _plain(text: str, length: int) -> str:
    """Return a text in a line that is neither empty nor parsed."""
    text = " ".join(text.split()).replace("<", "\u2039").replace(">", "\u203a")
    return truncate(text, length) or "\u2013"
