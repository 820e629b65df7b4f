"""Blocks of messages and views as HTML; their controls are fields and buttons of a form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from draftsman_testing.fake.markup import Markup, element, join
from draftsman_testing.slack.message_store import controls
from draftsman_testing.slack.page import mrkdwn
from draftsman_testing.slack.world import Json

PRESS: Final = "press"
"""The field with the action id of the pressed control."""
MANY: Final = ("checkboxes", "multi_")
"""Beginnings of the kinds of controls with several values."""


@dataclass(frozen=True, slots=True)
class BlockHtml:
    """Renders blocks for a page."""

    people: Mapping[str, str]
    """Names of all who can be chosen, by id."""
    names: mrkdwn.Names
    where: str
    """The message or view, for the ids of its fields."""

    def blocks(self, blocks: Iterable[Json], errors: Mapping[str, str]) -> Markup:
        """Return blocks, with the errors of inputs by block."""
        return join(*(self._block(block, errors.get(block["block_id"], "")) for block in blocks))

    def _block(self, block: Json, error: str) -> Markup:
        parts: list[str] = []
        match block["type"]:
            case "section" | "header":
                parts = [self._text(text) for text in (block.get("text"), *block.get("fields", ()))]
            case "markdown":
                parts = [element("pre", str(block["text"]))]
            case "divider":
                parts = [element("hr")]
            case "context":
                texts = [self._text(text) for text in block["elements"] if "text" in text]
                parts = [element("div", join(*texts, by=" · "), class_="context")]
            case "input":
                return self._input(block, error)
        parts += [self._control(control) for control in controls(block)]
        return element("div", *parts, class_="block")

    def _text(self, text: Json | None) -> Markup:
        if text is None:
            return Markup("")
        if text["type"] == "plain_text":
            return join(text["text"])
        return mrkdwn.html(text["text"], self.names)

    def _input(self, block: Json, error: str) -> Markup:
        name = block["block_id"]
        label = element("label", self._text(block["label"]), for_=self._id(name))
        field = self._field(block["element"], name)
        hint = element("small", self._text(block.get("hint")))
        told = element("p", error, class_="note", role="alert") if error else ""
        return element("fieldset", label, field, hint, told)

    def _control(self, control: Json) -> Markup:
        """Return a control whose use is sent at once."""
        name = control["action_id"]
        if control["type"] != "button":
            field = self._field(control, name)
            return join(field, element("button", "Choose", name=PRESS, value=name))
        label = control["text"]["text"]
        if "url" in control:
            return element("a", label, href=control["url"], rel="noreferrer")
        style = control.get("style", "")
        button = element("button", label, name=PRESS, value=name, class_=style)
        if "confirm" not in control:
            return button
        confirm = control["confirm"]
        question = [self._text(confirm["title"]), element("br"), self._text(confirm["text"])]
        sure = element("button", confirm["confirm"]["text"], name=PRESS, value=name, class_=style)
        summary = element("summary", label, class_=f"button {style}")
        inner = element("p", *question)
        return element("details", summary, inner, sure, class_="confirm", id=self._id(name))

    def _field(self, control: Json, name: str) -> Markup:
        """Return the field of a control, whose name is that of its block or action."""
        kind = control["type"]
        attributes: dict[str, Any] = {"name": f"value:{name}", "id": self._id(name)}
        attributes["aria_label"] = (control.get("placeholder") or {}).get("text", name)
        start = str(control.get("initial_value", ""))
        if kind == "plain_text_input" and control.get("multiline"):
            return element("textarea", start, rows="3", data_first=start, **attributes)
        if kind.endswith("_input") or kind == "external_select":
            return element("input", value=start, data_first=start, **attributes)
        chosen = _initial(control)
        choices = [
            element("option", label, value=value, selected=value in chosen)
            for value, label in self._choices(control)
        ]
        multiple = kind.startswith(MANY)
        empty = [] if multiple else [element("option", attributes["aria_label"], value="")]
        return element("select", *empty, *choices, multiple=multiple, **attributes)

    def _choices(self, control: Json) -> Iterator[tuple[str, str]]:
        if "users" in control["type"]:
            yield from self.people.items()
        groups: Sequence[Json] = control.get("option_groups", ())
        for option in (*control.get("options", ()), *(o for g in groups for o in g["options"])):
            yield option["value"], option["text"]["text"]

    def _id(self, name: str) -> str:
        return f"{self.where}:{name}"


def _initial(control: Json) -> set[str]:
    options = [*control.get("initial_options", ()), control.get("initial_option") or {}]
    return {str(option.get("value")) for option in options} | {str(control.get("initial_user"))}
