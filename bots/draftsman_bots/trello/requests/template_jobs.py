"""Requests of labels that are bound to a template or type, and the comment on their parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import InvalidParameters
from draftsman.jobs.job import AGENT_TYPE
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.schedules.template import Template
from draftsman_bots.trello.deliveries import markdown
from draftsman_bots.trello.ids import card_target
from draftsman_bots.trello.records.board import card_subject_key
from draftsman_bots.trello.requests.refusals import LabelRefused

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.schedules.job_form import JobForm
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import Episode


# Parser of parameters in the custom fields and the description of a card. Pure.
#
# A custom field sets the parameter of its name. A line `NAME: VALUE` sets a parameter, also as an
# item of a list; all other lines are text. Trello's editor escapes signs and makes links of
# addresses, which is undone unless the value is code.


_LINE: Final = re.compile(
    r"[ \t]{0,20}(?:[-*+][ \t]+)?[*_`]{0,3}([A-Za-z_](?:[A-Za-z0-9_]|\\_){0,200})[*_`]{0,3}"
    r"[ \t]{0,20}:[*_]{0,3}(?:[ \t]+(.*))?"
)
_CODE: Final = re.compile(r"(`{1,3})([^`]+)\1")
_LINK: Final = re.compile(r"!?\[[^\[\]]{0,2000}\]\(([^()\s]{0,2000})(?:\s\"[^\"]{0,1000}\")?\)")
_ADDRESS: Final = re.compile(r"<(https?://[^<>\s]{1,2000})>")
_ESCAPED: Final = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~|<>@:&])")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
"""A date of a custom field, which always has a time."""
_DAY: Final = 10
"""Characters of the day of a time."""
TITLE: Final = "title"
DESCRIPTION: Final = "description"
URL: Final = "url"


@dataclass(frozen=True, slots=True)
class CardParameters:
    """The values of parameters on a card, and problems by parameter."""

    values: dict[str, str]
    problems: dict[str, str] = field(default_factory=dict)


def read_parameters(
    properties: Mapping[str, Mapping[str, Any]], ticket: Mapping[str, Any]
) -> CardParameters:
    """Return the values on a card for parameters with these schemas.

    Without another value, `title`, `description` and `url` are those of the card, its description
    without the lines of parameters.
    """
    names = properties.keys()
    by_key = {name.casefold(): name for name in names}
    values, problems = _of_fields(properties, ticket)
    in_fields = set(values)
    text: list[str] = []
    for line in str(ticket.get("description") or "").splitlines():
        match = _LINE.fullmatch(line)
        key = match[1].replace("\\", "") if match else ""
        name = key if key in names else by_key.get(key.casefold())
        if match is None or name is None:
            text.append(line)
        elif name in in_fields:
            problems[name] = "is a custom field and a line; keep one of them"
        elif name in values:
            problems[name] = "is on two lines; write a single line"
        elif value := _parameter_value(match[2] or ""):
            values[name] = value
    card = {TITLE: ticket.get("title"), DESCRIPTION: "\n".join(text), URL: ticket.get("url")}
    for name, content in card.items():
        if name in names and name not in values and (plain := str(content or "").strip()):
            values[name] = plain
    return CardParameters(values, problems)


def _of_fields(
    properties: Mapping[str, Mapping[str, Any]], ticket: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values of custom fields that have the names of parameters, and problems."""
    by_key = {_key(name): name for name in properties}
    values: dict[str, str] = {}
    problems: dict[str, str] = {}
    for item in ticket.get("custom_fields", ()):
        name = by_key.get(_key(item["name"]))
        if name is None or not item["value"].strip():
            continue
        if name in values:
            problems[name] = "is in two custom fields; rename one of them"
        is_day = properties[name].get("format") == "date" and _TIME.fullmatch(item["value"])
        values[name] = item["value"][:_DAY] if is_day else item["value"].strip()
    return values, problems


def _key(name: str) -> str:
    """Return a name in any case, with spaces or hyphens for `_`."""
    return "_".join(re.split(r"[\s_-]+", name.strip().casefold()))


def _parameter_value(text: str) -> str:
    """Return a value as it was typed."""
    text = text.strip()
    if (code := _CODE.fullmatch(text)) is not None:
        return code[2].strip()
    for pattern in (_LINK, _ADDRESS):
        if (match := pattern.fullmatch(text)) is not None:
            return match[1]
    return _ESCAPED.sub(r"\1", text)


FILL_IN: Final = (
    "Fill in custom fields with these names, or write these lines in the description of the card,"
    " then add the label again:"
)
MAX_ASKED: Final = 30
"""Parameters that a comment names."""


async def form_request(
    context: BotContext, episode: Episode, name: str, ticket: dict[str, Any]
) -> Invocation:
    """Return the request of a template or type for a card.

    Raises LabelRefused; NotFound and UsageError if it cannot be used.
    """
    form = await context.rt.job_forms.find(name)
    on_card = read_parameters(form.inputs.properties, ticket)
    fields = {"subject_key": card_subject_key(episode.card), "source_type": "ticket"}
    definition = form.of.definition if isinstance(form.of, Template) else None
    has_url = definition is not None and definition.url
    fields |= {"url": ticket["url"]} if ticket["url"] and not has_url else {}
    if on_card.problems:
        raise _refused(episode, form, on_card.problems)
    try:
        entered = EnteredForm(
            form.inputs.parsed(on_card.values),
            fields=fields,
            event=episode.key,
            notify=(card_target(episode.card),),
            chats=False,
        )
        request = await context.rt.job_forms.request(form, entered)
    except InvalidParameters as error:
        if error.problems:
            raise _refused(episode, form, error.problems) from None
        comment = f"No job was created: {markdown.escape(error.reason)}"
        raise LabelRefused(error.reason, comment, f"parameters:{episode.key}") from None
    if request.type != AGENT_TYPE:
        return request
    content = ticket | {"label": episode.label}
    labels = tuple((label["id"], label["name"]) for label in ticket["labels"])
    payload = request.payload | {"ticket": content}
    return request.model_copy(update={"payload": payload, "labels": labels})


def _refused(episode: Episode, form: JobForm, problems: Mapping[str, str]) -> LabelRefused:
    text = f"{form.path} lacks valid parameters: {', '.join(problems)}"
    return LabelRefused(text, refusal_comment(form, problems), f"parameters:{episode.key}")


def refusal_comment(form: JobForm, problems: Mapping[str, str]) -> str:
    """Return the comment that asks for other parameters, each with its problem."""
    lines = []
    for name, problem in list(problems.items())[:MAX_ASKED]:
        description = form.inputs.properties.get(name, {}).get("description")
        note = f" ({markdown.one_line(description, 200)})" if isinstance(description, str) else ""
        lines.append(f"- {markdown.one_line(name, 200)}{note}: {markdown.one_line(problem, 300)}")
    example = "\n".join(f"{name}: VALUE" for name in list(problems)[:MAX_ASKED])
    return "\n".join(
        [
            f"No job was created: {markdown.escape(form.label)} needs other parameters.",
            "",
            *lines,
            "",
            FILL_IN,
            "",
            markdown.code(example),
        ]
    )
