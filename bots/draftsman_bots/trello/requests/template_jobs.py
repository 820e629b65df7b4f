"""Requests of labels that are bound to a template, and the comment that asks for parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from draftsman.errors import InvalidParameters, UsageError
from draftsman.jobs.job import AGENT_TYPE
from draftsman_bots.trello.deliveries import markdown
from draftsman_bots.trello.ids import card_target
from draftsman_bots.trello.records.board import card_subject_key
from draftsman_bots.trello.requests.refusals import LabelRefused

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import Invocation
    from draftsman.schedules.template import TemplateDefinition
    from draftsman_bots.trello.context import BotContext
    from draftsman_bots.trello.records.board import Episode


# Parser of the parameters of a template in the description of a card. Pure.
#
# A line `NAME: VALUE` sets a parameter, also as an item of a list; all other lines are text.
# Trello's editor escapes signs and makes links of addresses, which is undone unless the value is
# code.


_LINE: Final = re.compile(
    r"[ \t]{0,20}(?:[-*+][ \t]+)?[*_`]{0,3}([A-Za-z_](?:[A-Za-z0-9_]|\\_){0,200})[*_`]{0,3}"
    r"[ \t]{0,20}:[*_]{0,3}(?:[ \t]+(.*))?"
)
_CODE: Final = re.compile(r"(`{1,3})([^`]+)\1")
_LINK: Final = re.compile(r"!?\[[^\[\]]{0,2000}\]\(([^()\s]{0,2000})(?:\s\"[^\"]{0,1000}\")?\)")
_ADDRESS: Final = re.compile(r"<(https?://[^<>\s]{1,2000})>")
_ESCAPED: Final = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~|<>@:&])")
TITLE: Final = "title"
DESCRIPTION: Final = "description"
URL: Final = "url"


@dataclass(frozen=True, slots=True)
class CardParameters:
    """The values of parameters on a card, and problems by parameter."""

    values: dict[str, str]
    problems: dict[str, str] = field(default_factory=dict)


def read_parameters(names: Collection[str], ticket: Mapping[str, Any]) -> CardParameters:
    """Return the values on a card for these parameters.

    Without a line, `title`, `description` and `url` are those of the card, its description without
    the lines of parameters.
    """
    by_key = {name.casefold(): name for name in names}
    values: dict[str, str] = {}
    problems: dict[str, str] = {}
    text: list[str] = []
    for line in str(ticket.get("description") or "").splitlines():
        match = _LINE.fullmatch(line)
        key = match[1].replace("\\", "") if match else ""
        name = key if key in names else by_key.get(key.casefold())
        if match is None or name is None:
            text.append(line)
        elif name in values:
            problems[name] = "is on two lines; write a single line"
        elif value := _parameter_value(match[2] or ""):
            values[name] = value
    card = {TITLE: ticket.get("title"), DESCRIPTION: "\n".join(text), URL: ticket.get("url")}
    for name, content in card.items():
        if name in names and name not in values and (plain := str(content or "").strip()):
            values[name] = plain
    return CardParameters(values, problems)


def _parameter_value(text: str) -> str:
    """Return a value as it was typed."""
    text = text.strip()
    if (code := _CODE.fullmatch(text)) is not None:
        return code[2].strip()
    for pattern in (_LINK, _ADDRESS):
        if (match := pattern.fullmatch(text)) is not None:
            return match[1]
    return _ESCAPED.sub(r"\1", text)


MAX_ASKED: Final = 30
"""Parameters that a comment names."""


async def template_request(
    context: BotContext, episode: Episode, template_name: str, ticket: dict[str, Any]
) -> Invocation:
    """Return the request of a template for a card.

    Raises LabelRefused; NotFound and UsageError if the template cannot be used.
    """
    templates = context.rt.templates
    template = await templates.get(template_name)
    definition = template.definition
    if definition is None:
        raise UsageError(f"template {template_name} was removed")
    on_card = read_parameters(definition.inputs.properties, ticket)
    values = definition.inputs.parsed(on_card.values)
    fields = {"subject_key": card_subject_key(episode.card), "source_type": "ticket"}
    fields |= {"url": ticket["url"]} if ticket["url"] and not definition.url else {}
    problems = dict(on_card.problems)
    if not problems:
        try:
            request = await templates.request(
                template_name,
                values,
                fields=fields,
                event=episode.key,
                notify=(card_target(episode.card),),
                chats=False,
            )
        except InvalidParameters as error:
            problems |= error.problems
            if not problems:
                raise
    if problems:
        raise _missing(episode, template_name, definition, problems)
    if request.type != AGENT_TYPE:
        return request
    content = ticket | {"label": episode.label}
    labels = tuple((label["id"], label["name"]) for label in ticket["labels"])
    payload = request.payload | {"ticket": content}
    return request.model_copy(update={"payload": payload, "labels": labels})


def _missing(
    episode: Episode, template: str, definition: TemplateDefinition, problems: Mapping[str, str]
) -> LabelRefused:
    names = ", ".join(problems)
    text = f"template {template} lacks valid parameters: {names}"
    comment = missing_comment(template, definition, problems)
    return LabelRefused(text, comment, f"parameters:{episode.key}")


def missing_comment(
    template: str, definition: TemplateDefinition, problems: Mapping[str, str]
) -> str:
    """Return the comment that asks for the parameters of a template, each with its problem."""
    lines = []
    for name, problem in list(problems.items())[:MAX_ASKED]:
        description = definition.inputs.properties.get(name, {}).get("description")
        note = f" ({markdown.one_line(description, 200)})" if isinstance(description, str) else ""
        lines.append(f"- {markdown.one_line(name, 200)}{note}: {markdown.one_line(problem, 300)}")
    example = "\n".join(f"{name}: VALUE" for name in list(problems)[:MAX_ASKED])
    return "\n".join(
        [
            f"No job was created: template {markdown.escape(template)} needs other parameters.",
            "",
            *lines,
            "",
            "Write these lines in the description of the card, then add the label again:",
            "",
            markdown.code(example),
        ]
    )
