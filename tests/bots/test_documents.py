"""The words of all messages in each medium, as accepted snapshots; and what holds for any message.

`make wording` accepts changed words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import (
    Choices,
    Code,
    Document,
    InFile,
    Note,
    Paragraph,
    Quote,
    elsewhere,
)
from draftsman.deliveries.documents.html import MAIL_STYLES, HtmlMedium, print_html
from draftsman.deliveries.documents.json import message_json
from draftsman.deliveries.documents.plain import render_plain
from draftsman.formats.invisible import replace_invisible
from draftsman_bots.forges.deliveries.render import render as render_comment
from draftsman_bots.slack.deliveries.render import render as render_blocks
from draftsman_bots.trello.deliveries.render import render as render_card
from draftsman_testing.channel.examples import ANNA, BEN, HOSTILE, LONG, examples
from tests.bots.messages import messages, words
from tests.support.cases import cases

EXAMPLES: Final = examples()
NAMES: Final = {"5f1e0c9a8b7d6e5f4a3b2c1d": "annaberg"}
FORGE: Final = "github/acme/pay#12"
WORDS: Final = words("*_`@<>&#:/\n")
PEOPLE: Final = (ANNA, BEN)


def slack(message: Message) -> str:
    """Return the blocks of a message as text, a line each."""
    return "\n".join(_lines(render_blocks(message).blocks))


def _lines(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        match block["type"]:
            case "section":
                yield block["text"]["text"]
            case "context":
                yield " | ".join(element["text"] for element in block["elements"])
            case "actions":
                yield " ".join(f"[{_label(element)}]" for element in block["elements"])


def _label(element: dict[str, Any]) -> str:
    text = element.get("text") or element["placeholder"]
    return str(text["text"])


def forge(message: Message) -> str:
    """Return a message as a comment of a forge."""
    return render_comment(replace(message, target=FORGE))


PAGE: Final = HtmlMedium(
    "attached",
    lambda step: f"to {step.action}: {step.command}",
    lambda control: f"https://inbox.example/{control.action}",
)


def html(message: Message) -> str:
    """Return a message as HTML."""
    return print_html(build_document(message), PAGE)


def _dumps(part: dict[str, Any]) -> str:
    return json.dumps(part, ensure_ascii=False)


MEDIA: Final[dict[str, Callable[[Message], str]]] = {
    "terminal": render_plain,
    "slack": slack,
    "trello": lambda message: render_card(message, NAMES),
    "forge": forge,
    "html": html,
    "json": lambda message: "\n".join(map(_dumps, message_json(message)["data"]["document"])),
}


@cases("name", EXAMPLES)
def test_a_message_has_the_accepted_words(name: str, snapshot: SnapshotAssertion) -> None:
    message = EXAMPLES[name]
    shown = {medium: _short(render(message)) for medium, render in MEDIA.items()}
    assert "\n\n".join(f"--- {medium}\n{text}" for medium, text in shown.items()) == snapshot(
        name=name
    )


def _short(text: str) -> str:
    """Return a text in which a long passage is counted."""
    sentence = LONG[:61]
    count = text.count(sentence)
    return text.replace(sentence * count, f"({count} sentences) ") if count > 2 else text


def test_the_examples_have_every_kind_of_message() -> None:
    assert {message.kind for message in EXAMPLES.values()} == set(DeliveryKind)
    assert len(EXAMPLES) >= 60


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, lambda name, _: replace(BEN, name=name)))
def test_no_medium_mentions_a_person_who_has_no_account_there(message: Message) -> None:
    """Texts have every character that begins a mention, an emoji, a link or a command."""
    sections = [block for block in render_blocks(message).blocks if block["type"] != "actions"]
    assert not re.search(r"<(?!!date\^|https?:)", "\n".join(_lines(sections)))
    for text in (forge(message), render_card(message, NAMES)):
        assert not re.search(r"(?<!\w)@\w", text)


class Elements(HTMLParser):
    """The elements of a text of HTML, with the characters that its reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.shown = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "br":
            self.shown += "\n"
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.shown += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, lambda name, _: replace(BEN, name=name)), st.booleans())
def test_html_has_no_other_elements_than_those_of_the_printer(
    message: Message, is_mail: bool
) -> None:
    page = replace(PAGE, styles=MAIL_STYLES) if is_mail else PAGE
    elements = Elements(print_html(build_document(message), page))
    assert elements.tags <= {
        "p", "blockquote", "pre", "ol", "li", "strong", "code", "time", "br", "a",
    }  # fmt: skip
    names = {name for name, _ in elements.attributes}
    assert names <= {"class", "href", "rel", "datetime", "title", *(["style"] if is_mail else ())}
    urls = [value or "" for name, value in elements.attributes if name == "href"]
    assert all(url.startswith(("https://", "http://")) for url in urls)
    assert replace_invisible(elements.shown) == elements.shown


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, lambda name, _: replace(BEN, name=name)))
def test_html_of_a_whole_message_shows_each_of_its_texts(message: Message) -> None:
    document = build_document(message)
    elements = Elements(print_html(document, replace(PAGE, is_whole=True)))
    shown = "".join(elements.shown.split())
    for text in _texts(document):
        assert "".join(replace_invisible(text).split()) in shown


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, lambda name, _: replace(BEN, name=name)))
def test_json_has_each_text_of_a_message(message: Message) -> None:
    strings = [*_strings(json.loads(json.dumps(message_json(message)))["data"]["document"])]
    assert {*_texts(build_document(message))} <= {*strings}


@given(messages(WORDS, WORDS, lambda name, account: replace(ANNA, name=name)))
def test_json_names_people_without_their_accounts(message: Message) -> None:
    parts = message_json(replace(message, payload=None))["data"]["document"]
    assert not {*ANNA.ids.values()} & {*_strings(parts)}


def _texts(document: Document) -> Iterator[str]:
    for part in document:
        match part:
            case Quote(text) | Code(text):
                yield text
            case Paragraph(spans) | Note(spans):
                yield from (span for span in spans if isinstance(span, str))
            case Choices(items):
                yield from (text for item in items for text in (item.label, item.description))
            case _:
                pass


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            yield from (text for item in value for text in _strings(item))
        case dict():
            yield from (text for item in value.values() for text in _strings(item))


@cases("name", [name for name in EXAMPLES if "long" in name])
def test_what_is_cut_off_is_said_with_the_place_to_read_it(name: str) -> None:
    message = EXAMPLES[name]
    parts = build_document(message)
    cut = [
        part
        for part in parts
        if isinstance(part, Paragraph | Quote) and len(str(part.text)) > part.most
    ]
    assert cut or message.subject.error == LONG
    markdown = html(message).replace("<code>", "`").replace("</code>", "`")
    for text in (slack(message), forge(message), render_card(message, NAMES), markdown):
        assert "…" in text
        assert not any(isinstance(part, InFile) for part in parts) or "The full text" in text
        command = (
            "<code>draftsman show D-7</code>" if text == html(message) else "`draftsman show D-7`"
        )
        assert not any(map(elsewhere, parts)) or f"To read it: {command}" in text


def test_choices_that_are_left_out_can_be_read_elsewhere() -> None:
    message = EXAMPLES["question with many choices"]
    (choices,) = (part for part in build_document(message) if isinstance(part, Choices))
    assert len(choices.items) == 120
    for text in (forge(message), render_card(message, NAMES)):
        assert "120. region 120" in text
    assert "<li>region 120</li></ol>" in html(message)


def test_hostile_text_has_no_effect_in_any_medium() -> None:
    hostile = [message for name, message in EXAMPLES.items() if "hostile" in name]
    assert len(hostile) == 5
    for message in hostile:
        assert HOSTILE not in forge(message)
        assert "\n/approve" not in forge(message)
        assert "<!everyone>" not in slack(message)
