"""A page of a fake in the browser: its state, and forms of what a person can do there.

The page is served on 127.0.0.1 below a random path, which other sites and users do not know. It
works without JavaScript; with it, the page follows the state of the fake.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from aiohttp import web
from multidict import MultiDictProxy

from draftsman_testing.fake.markup import Markup, element, join
from draftsman_testing.fake.server import FakeServer

Form = MultiDictProxy[str | bytes | bytearray | web.FileField]
POLL: Final = 20.0
"""Seconds after which a request for changes is answered without a change."""
STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --go: #007a5a; --stop: #c0264b; }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 0 12px;
  overflow-wrap: anywhere; }
header { position: sticky; top: 0; background: Canvas; border-bottom: 1px solid var(--line);
  padding: 8px 0; z-index: 1; }
header form { display: inline; } h1 { font-size: 1.05rem; margin: 0 0 4px; }
.steps { margin: 8px 0; padding-left: 1.4rem; } .note { border-left: 3px solid var(--go);
  padding: 4px 10px; margin: 8px 0; background: var(--soft); }
.ended { border-left: 3px solid var(--stop); padding: 4px 10px; margin: 8px 0; }
article { border-top: 1px solid var(--line); padding: 8px 0; }
.thread { margin-left: 10px; border-left: 3px solid var(--line); padding-left: 12px; }
.only { background: var(--soft); padding: 8px; } .who { font-weight: 700; }
.time, .context, small { opacity: .75; font-size: .85rem; } .block { margin: 4px 0; }
pre, textarea, input, select { max-width: 100%; } pre { background: var(--soft); padding: 8px;
  overflow-x: auto; margin: 4px 0; } code { background: var(--soft); }
textarea, input:not([type]) { width: 100%; font: inherit; padding: 6px; }
button, summary.button { font: inherit; padding: 6px 12px; min-height: 36px; margin: 2px 4px 2px 0;
  border: 1px solid var(--line); border-radius: 6px; background: var(--soft); cursor: pointer; }
.primary { background: var(--go); color: #fff; }
.danger, summary.button.danger { background: var(--stop); color: #fff; }
details.confirm { display: inline-block; vertical-align: top; }
details.confirm > summary { display: inline-block; list-style: none; }
dialog { position: static; width: 100%; margin: 8px 0; border: 2px solid var(--go); }
fieldset { border: 0; padding: 0; margin: 8px 0; } label { display: block; }
blockquote { margin: 4px 0; border-left: 3px solid var(--line); padding-left: 8px; }
.columns > section { min-width: 0; }
@media (min-width: 50rem) { .columns { display: flex; gap: 12px; } .columns > section { flex: 1; }
  .columns > section:has(article) { flex: 3; } }
"""
ENDED: Final = (
    "This page is not served now. A demo that was killed goes on here as soon as it is started"
    " again; after Ctrl-C, a new demo has a new page."
)
SCRIPT: Final = """
const main = document.querySelector("main");
(async () => {
  for (;;) {
    const url = "changes" + location.search + "&seen=" + main.dataset.seen;
    const answer = await fetch(url).catch(() => null);
    document.getElementById("ended").hidden = Boolean(answer);
    if (!answer) await new Promise((resolve) => setTimeout(resolve, 2000));
    if (!answer) continue;
    if (answer.status !== 200) continue;
    const fields = [...main.querySelectorAll("textarea, input:not([type=hidden]), select")];
    const kept = fields.filter((field) => field.id && field.value !== field.dataset.first)
      .map((field) => [field.id, field.value]);
    const open = [...main.querySelectorAll("details[id][open]")].map((part) => part.id);
    const focused = document.activeElement && document.activeElement.id;
    main.dataset.seen = answer.headers.get("x-seen");
    main.innerHTML = await answer.text();
    for (const [id, value] of kept) {
      const field = document.getElementById(id);
      if (field) field.value = value;
    }
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus();
  }
})();
"""


@dataclass(frozen=True, slots=True)
class Guide:
    """What the page says above the state of the fake."""

    title: str
    steps: Sequence[str] = ()
    """What to do, in order."""


class NotSent(Exception):
    """The service takes no text like this, and its author keeps it."""


class Page(ABC):
    """A page of a fake for its people, of whom one looks at it."""

    def __init__(self, server: FakeServer[Any], guide: Guide) -> None:
        self._server = server
        self._guide = guide
        self._notes: dict[str, str] = {}
        """What each person is told about their last action."""
        self._unsent: dict[tuple[str, str], str] = {}
        """The text that was not sent, by its person and field."""
        known = urlsplit(server.state.page_url)
        self._port = known.port or 0
        self._path = known.path or f"/{secrets.token_urlsafe(16)}/"
        self._nonce = secrets.token_urlsafe(16)

    @property
    @abstractmethod
    def people(self) -> Mapping[str, str]:
        """Names by id."""

    @abstractmethod
    def show(self, person: str) -> Markup:
        """Return what a person sees."""

    @abstractmethod
    async def act(self, person: str, form: Form) -> str | None:
        """Do what a form asks for; return what the person is told.

        Raises LookupError if it is gone, and NotSent for a text.
        """

    def writing(
        self, person: str, label: str, button: str, text: str = "", *, id: str, **fields: str
    ) -> Markup:
        """Return a form to write a text in, which begins with what was not sent."""
        text = self._unsent.get((person, id), text)
        box = element(
            "textarea", text, name="text", rows="2", id=id, aria_label=label, placeholder=label,
            required=True, data_first=text,
        )  # fmt: skip
        send = element("button", button, class_="primary")
        return action_form(box, send, do="write", field=id, **fields)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve the page for the block; yield its URL."""
        app = web.Application()
        app.add_routes(
            [
                web.get(self._path, self._whole),
                web.post(self._path, self._act),
                web.get(f"{self._path}changes", self._changes),
            ]
        )
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._port).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}{self._path}"
            self._server.state.page_url = url
            self._server.state.on_change()
            yield url
        finally:
            await runner.cleanup()

    def _person(self, request: web.Request) -> str:
        """Return who looks at the page: by default the first."""
        name = request.query.get("as", "")
        return name if name in self.people else next(iter(self.people))

    def _main(self, person: str) -> tuple[str, str]:
        note = self._notes.get(person)
        told = element("p", note, class_="note", role="status") if note else ""
        text = join(told, self.show(person))
        return text, hashlib.sha256(text.encode()).hexdigest()[:16]

    async def _whole(self, request: web.Request) -> web.Response:
        person = self._person(request)
        if "as" not in request.query:
            raise web.HTTPSeeOther(f"?as={quote(person)}")
        text, seen = self._main(person)
        steps = [element("li", step) for step in self._guide.steps]
        names = [
            element(
                "button", name, type="submit", name="as", value=id,
                class_="primary" if id == person else "", aria_pressed=str(id == person).lower(),
            )
            for id, name in self.people.items()
        ]  # fmt: skip
        head = join(
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", self._guide.title),
            element("noscript", element("meta", http_equiv="refresh", content="5")),
            element("style", Markup(STYLE), nonce=self._nonce),
        )
        header = element(
            "header",
            element("h1", self._guide.title),
            element("form", "You are ", *names, method="get"),
            element("p", ENDED, id="ended", class_="ended", role="alert", hidden=True),
        )
        body = join(
            header,
            element("ol", *steps, class_="steps") if steps else "",
            element("main", Markup(text), data_seen=seen),
            element("script", Markup(SCRIPT), nonce=self._nonce),
        )
        page = element("html", element("head", head), element("body", body), lang="en")
        return self._response(f"<!doctype html>{page}")

    async def _changes(self, request: web.Request) -> web.Response:
        """Return what the person sees, once it is not what the browser has."""
        person = self._person(request)
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL):
                while self._main(person)[1] == request.query.get("seen"):
                    await self._server.wait_for_call()
        text, seen = self._main(person)
        if seen == request.query.get("seen"):
            return web.Response(status=204)
        return self._response(text, seen)

    async def _act(self, request: web.Request) -> web.Response:
        person = self._person(request)
        form = await request.post()
        field = person, str(form.get("field", ""))
        self._unsent.pop(field, None)
        try:
            note = await self.act(person, form)
        except NotSent as error:
            note = str(error)
            self._unsent[field] = str(form["text"])
        except LookupError:
            note = "This is no longer there: the page shows what is there now."
        self._notes[person] = note or ""
        self._server.state.changed()
        raise web.HTTPSeeOther(f"?as={quote(person)}")

    def _response(self, text: str, seen: str = "") -> web.Response:
        policy = (
            f"default-src 'none'; style-src 'nonce-{self._nonce}';"
            f" script-src 'nonce-{self._nonce}'; connect-src 'self'; form-action 'self';"
            " base-uri 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store", "X-Seen": seen}
        return web.Response(text=text, content_type="text/html", headers=headers)


def action_form(*content: str, **fields: str) -> Markup:
    """Return a form of an action with hidden fields."""
    hidden = [
        element("input", type="hidden", name=name, value=value) for name, value in fields.items()
    ]
    return element("form", *hidden, *content, method="post", class_="block")
