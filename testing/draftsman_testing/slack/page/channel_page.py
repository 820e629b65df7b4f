"""A channel of the fake Slack as a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from html import escape
from typing import Any, Final

from draftsman_testing.fake.markup import Markup, element, join
from draftsman_testing.fake.page import Form, Guide, NotSent, Page, action_form
from draftsman_testing.slack.event_delivery import Ack
from draftsman_testing.slack.interactions import control
from draftsman_testing.slack.message_store import controls
from draftsman_testing.slack.messages import InvalidCommand
from draftsman_testing.slack.page import mrkdwn
from draftsman_testing.slack.page.blocks import MANY, PRESS, BlockHtml
from draftsman_testing.slack.server import FakeSlack
from draftsman_testing.slack.world import Json

MENTION: Final = re.compile(r"@draftsman\b")
LATE: Final = "draftsman did not answer within 3 seconds. Try again."


class ChannelPage(Page):
    """The messages of a channel, and the modals and controls of the person who looks at it."""

    def __init__(self, slack: FakeSlack, channel: str, guide: Guide, draft: str = "") -> None:
        super().__init__(slack, guide)
        self._slack = slack
        self._world = slack.world
        self._room = self._world.channels[channel]
        self._draft = draft
        """The text that the composer begins with."""

    @property
    def people(self) -> Mapping[str, str]:
        """Names of the members who are no bots, by id."""
        users = (self._world.users[id] for id in self._room.members)
        people = sorted((user["real_name"], user["id"]) for user in users if not user["is_bot"])
        return {id: name for name, id in people}

    def show(self, person: str) -> Markup:
        """Return the modal of a person, if there is one, else the channel."""
        if views := self._slack.views(person):
            return self._modal(views[-1])
        label = f"Message to #{self._room.name}, or a command"
        draft = "" if self._slack.messages(self._room.id) else self._draft
        composer = self.writing(person, label, "Send", draft, id="composer")
        return join(*self._messages(person), composer)

    def _messages(self, person: str) -> Iterator[Markup]:
        ephemeral = self._slack.ephemerals(self._room.id, person)

        def with_ephemeral(messages: list[Json], thread: str | None) -> list[tuple[Json, bool]]:
            only = [item for item in ephemeral if item.get("thread_ts") == thread]
            both = [(item, False) for item in messages] + [(item, True) for item in only]
            return sorted(both, key=lambda pair: str(pair[0]["ts"]))

        for message, only in with_ephemeral(self._slack.messages(self._room.id), None):
            ts = message["ts"]
            replies = with_ephemeral(self._slack.messages(self._room.id, ts), ts)
            thread = [self._message(*reply) for reply in replies]
            if status := self._slack.status(self._room.id, ts):
                thread.append(element("p", f"draftsman {status}", class_="context"))
            if not only:
                label, id = "Reply in this thread", f"reply:{ts}"
                thread.append(self.writing(person, label, "Reply", id=id, thread=ts))
            yield join(self._message(message, only), element("div", *thread, class_="thread"))

    def _message(self, message: Json, only: bool) -> Markup:
        """Return a message; `only`: no other person sees it."""
        user = self._world.users.get(str(message.get("user")), {"real_name": "?"})
        when = datetime.fromtimestamp(float(message["ts"])).astimezone()
        head = [element("span", user["real_name"], class_="who"), " "]
        head.append(element("span", f"{when:%H:%M:%S}", class_="time"))
        head += [element("small", " only visible to you")] if only else []
        content = self._content(message)
        files = [self._file(file) for file in message.get("files", ())]
        return element("article", *head, content, *files, class_="only" if only else "")

    def _content(self, message: Json) -> Markup:
        stream = message.get("stream", {})
        tasks = [
            element("li", f"{task['title']}: {task['status'].replace('_', ' ')}")
            for task in stream.get("tasks", {}).values()
        ]
        steps = element("ul", *tasks) if tasks else ""
        if not (blocks := message.get("blocks")):
            return element("div", mrkdwn.html(message["text"], self._name), steps, class_="block")
        shown = self._html(message["ts"]).blocks(blocks, {})
        if not any(controls(block) for block in blocks):
            return join(steps, shown)
        return join(steps, action_form(shown, do="press", ts=message["ts"]))

    def _file(self, file: Json) -> Markup:
        data = self._world.files[file["id"]]["data"] or b""
        summary = element("summary", f"{file['title']} ({file['size']} bytes)")
        text = element("pre", data.decode("utf-8", "replace"))
        return element("details", summary, text, id=file["id"])

    def _modal(self, view: Json) -> Markup:
        shown = self._html(view["id"]).blocks(view["blocks"], view["errors"])
        submit = (view.get("submit") or {}).get("text")
        close = (view.get("close") or {"text": "Close"})["text"]
        buttons = [element("button", close, name="do", value="close", formnovalidate=True)]
        if submit:
            buttons.insert(
                0, element("button", submit, name="do", value="submit", class_="primary")
            )
        title = element("h2", view["title"]["text"])
        return element("dialog", title, action_form(shown, *buttons, view=view["id"]), open=True)

    def _html(self, where: str) -> BlockHtml:
        return BlockHtml(self.people, self._name, where)

    def _name(self, id: str) -> str:
        """Return the name of a person or channel."""
        if id in self._world.channels:
            return self._world.channels[id].name
        return str(self._world.users.get(id, {}).get("name", id))

    async def act(self, person: str, form: Form) -> str | None:
        """Write, press, submit or close as a person does."""
        known = len(self._slack.complaints)
        match form.get("do"), form.get(PRESS):
            case "write", _:
                ack = await self._write(person, str(form["text"]), str(form.get("thread", "")))
            case "press", str(name):
                ack = await self._press(person, str(form["ts"]), name, form)
            case None, str(name):
                view = str(form["view"])
                ack = await self._slack.press_in_view(person, view, name, _value(form, name))
            case "submit", _:
                ack = await self._submit(person, str(form["view"]), form)
            case "close", _:
                await self._slack.close_view(person, str(form["view"]))
                return None
            case _:
                raise LookupError("no such action")
        if not ack.acked and ack.copies:
            return LATE
        return " ".join(self._slack.complaints[known:]) or None

    async def _write(self, person: str, text: str, thread: str) -> Ack:
        wire = escape(text.replace("\r\n", "\n").strip(), quote=False)
        if text.startswith("/") and not thread:
            name, _, rest = wire.partition(" ")
            try:
                return await self._slack.command(person, self._room.id, rest, name)
            except InvalidCommand as error:
                raise NotSent(str(error)) from None
        wire = MENTION.sub(f"<@{self._world.bot_user}>", wire)
        return await self._slack.say(person, self._room.id, wire, thread or None)

    async def _press(self, person: str, ts: str, name: str, form: Form) -> Ack:
        value = _value(form, name)
        message, _ = self._slack.visible(person, self._room, ts)
        _, pressed = control(message.get("blocks", []), name)
        if pressed["type"] == "external_select":
            offered = await self._slack.suggest(person, self._room.id, ts, name, str(value or ""))
            value = offered[0]["value"] if offered else value
        return await self._slack.choose(person, self._room.id, ts, name, value)

    async def _submit(self, person: str, view: str, form: Form) -> Ack:
        [content] = [item for item in self._slack.views(person) if item["id"] == view]
        inputs = {
            block["block_id"]: block["element"]["type"].startswith(MANY)
            for block in content["blocks"]
            if block["type"] == "input"
        }
        values: dict[str, Any] = {
            name: form.getall(f"value:{name}", []) if many else _value(form, name)
            for name, many in inputs.items()
        }
        return await self._slack.submit(person, view, values)


def _value(form: Form, name: str) -> str | None:
    """Return what was typed or chosen in a field; None for nothing."""
    return str(form.get(f"value:{name}", "")) or None
