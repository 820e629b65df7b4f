"""The windows that open in Slack, and the App Home. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.question import Question
from draftsman_bots.slack import ids
from draftsman_bots.slack.asking import controls
from draftsman_bots.slack.blocks import (
    Block,
    actions,
    button,
    context,
    option,
    plain,
    section,
)
from draftsman_bots.slack.grammar import MODES
from draftsman_bots.slack.text import escaped
from draftsman_bots.text import clamped, width

View = dict[str, Any]

TEXT: Final = "text"
MODE: Final = "mode"
AGENT: Final = "agent"
REPO: Final = "repo"
REASON: Final = "reason"
"""Block ids of the inputs."""
INPUT_MOST: Final = 3000
"""Characters that an input takes."""
AGENTS_MOST: Final = 100
HOME_QUESTIONS: Final = 15
"""Open questions that the App Home shows: a view has at most 100 blocks."""


def new_job(agents: Sequence[str], place: str = "", text: str = "") -> View:
    """Return the window of a new job; `place` is the target that is told of it."""
    long = width(text) > INPUT_MOST
    blocks = [_input(TEXT, "What is to be done?", clamped(text, INPUT_MOST), lines=True)]
    if long:
        blocks.append(context(f"The message is longer: this is how it begins, {INPUT_MOST} signs."))
    blocks.append(_select(MODE, "How", MODES))
    if len(agents) > 1:
        blocks.append(_select(AGENT, "Agent", agents[:AGENTS_MOST]))
    blocks.append(_input(REPO, "Repository (URL)", optional=True))
    return _modal(ids.NEW_JOB, "New job", "Start", place, blocks)


def free_text(job: int, question: int, text: str = "") -> View:
    """Return the window for an answer in one's own words."""
    name = f"D-{job}/{question}"
    blocks = [_input(TEXT, f"Your answer to {name}", clamped(text, INPUT_MOST), lines=True)]
    value = ids.answer_value(job, question)
    return _modal(ids.FREE_VIEW, clamped(f"Answer {name}", 24), "Answer", value, blocks)


def denial(job: int, question: int) -> View:
    """Return the window for the reason of a denial, which may be left out."""
    name = f"D-{job}/{question}"
    blocks = [_input(REASON, f"Why is {name} denied?", optional=True, lines=True)]
    value = ids.answer_value(job, question)
    return _modal(ids.DENY_VIEW, clamped(f"Deny {name}", 24), "Deny", value, blocks)


def home(asked: Sequence[Question], known: bool, command: str) -> View:
    """Return the App Home: what waits for this person."""
    head = [
        button("New job…", ids.NEW_JOB, ids.NEW_JOB, "primary"),
        button("Refresh", ids.REFRESH, ids.REFRESH),
    ]
    blocks = [actions(head)]
    if not known:
        blocks.append(section(f"draftsman does not know who you are: send `{command} link`."))
    elif not asked:
        blocks.append(section("Nothing waits for you."))
    for question in asked[:HOME_QUESTIONS]:
        blocks.append(section(f"*{question.name}* {escaped(question.text, 1000)}"))
        blocks.extend(controls(question))
    if len(asked) > HOME_QUESTIONS:
        blocks.append(context(f"and {len(asked) - HOME_QUESTIONS} more"))
    return {"type": "home", "blocks": blocks}


def _modal(callback: str, title: str, submit: str, metadata: str, blocks: list[Block]) -> View:
    return {
        "type": "modal",
        "callback_id": callback,
        "title": plain(title, 24),
        "submit": plain(submit, 24),
        "close": plain("Back", 24),
        "private_metadata": metadata,
        "blocks": blocks,
    }


def _input(
    block: str, label: str, text: str = "", *, optional: bool = False, lines: bool = False
) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": block,
        "multiline": lines,
        "max_length": INPUT_MOST,
    }
    if text:
        element["initial_value"] = text
    return {
        "type": "input",
        "block_id": block,
        "label": plain(label, 2000),
        "element": element,
        "optional": optional,
    }


def _select(block: str, label: str, names: Sequence[str]) -> Block:
    options = [option(name, name) for name in names]
    element = {
        "type": "static_select",
        "action_id": block,
        "options": options,
        "initial_option": options[0],
    }
    return {"type": "input", "block_id": block, "label": plain(label, 2000), "element": element}
