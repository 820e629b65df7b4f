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
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.documents.builder import build_document
from draftsman.deliveries.documents.document import (
    Choices,
    Code,
    Document,
    Items,
    Note,
    Paragraph,
    PicturePart,
    Quote,
    TablePart,
)
from draftsman.deliveries.documents.html import MAIL_STYLES, HtmlMedium, print_html
from draftsman.deliveries.documents.json import message_json
from draftsman.deliveries.documents.plain import render_plain
from draftsman.formats.invisible import escape_invisible
from draftsman.people.policy import Person
from draftsman_bots.forges.deliveries.render import render as render_comment
from draftsman_bots.slack.deliveries.render import render as render_blocks
from draftsman_bots.trello.deliveries.render import render as render_card
from draftsman_testing.channel.examples import ANNA, BEN, HOSTILE, LONG, examples
from draftsman_testing.slack.page import mrkdwn
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
    return render_comment(replace(message, target=FORGE), 65_536)


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
        "p", "blockquote", "pre", "ol", "ul", "li", "strong", "code", "time", "br", "a",
        "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    names = {name for name, _ in elements.attributes}
    assert names <= {"class", "href", "rel", "datetime", "title", *(["style"] if is_mail else ())}
    urls = [value or "" for name, value in elements.attributes if name == "href"]
    assert all(url.startswith(("https://", "http://")) for url in urls)
    assert escape_invisible(elements.shown) == elements.shown


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(WORDS, WORDS, lambda name, _: replace(BEN, name=name)))
def test_html_of_a_whole_message_shows_each_of_its_texts(message: Message) -> None:
    document = build_document(message)
    elements = Elements(print_html(document, PAGE))
    shown = "".join(elements.shown.split())
    for text in _texts(document):
        assert "".join(escape_invisible(text).split()) in shown


LITERAL: Final = (
    "*.py and *.md", "src/*.py, *", "a_b_c __init__.py _x_", "~/.config and ~b~", "`a` and `b",
    "feat/*_x_*~y~", "a < b & c > d &amp;", "2 * 3 * 4", "**/*.lock **", "<b>x</b>", "snake_case*",
)  # fmt: skip
"""Paths, names and branches with the marks of each medium."""


def _read_in_slack(message: Message) -> str:
    """Words in backticks have a fixed width there."""
    return Elements(mrkdwn.html(slack(message), str)).shown


def _read_as_markdown(text: str) -> str:
    return Elements(MarkdownIt("commonmark").enable("strikethrough").render(text)).shown


READ: Final[dict[str, Callable[[Message], str]]] = {
    "terminal": render_plain,
    "slack": _read_in_slack,
    "trello": lambda message: _read_as_markdown(render_card(message, NAMES)),
    "html": lambda message: Elements(html(message)).shown,
}
"""A message as its reader sees it in each medium; on forges, texts of agents are Markdown."""


@cases("text", LITERAL)
def test_paths_names_and_branches_are_shown_as_they_are(text: str) -> None:
    message = EXAMPLES["question without choices"]
    assert message.question is not None
    asked = replace(message.question, text=text, choices=[{"value": "v", "label": text}])
    shown = {medium: read(replace(message, question=asked)) for medium, read in READ.items()}
    plain = text.replace(" ", "")
    hidden = str.maketrans("", "", " \n\u200b`")
    for medium, seen in shown.items():
        assert plain.replace("`", "") in seen.translate(hidden), (medium, seen)


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
            case TablePart(columns, rows):
                yield from (cell for row in (columns, *rows) for cell in row)
            case PicturePart(text, file=file):
                yield from (text, file)
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


def _marked_text(seed: int, count: int, mark: str) -> str:
    return "".join(f"t{seed}n{number}e{mark}" for number in range(count))


MARKED: Final = st.builds(
    _marked_text, st.integers(0, 10**6), st.integers(0, 900), st.sampled_from([" ", " & ", "\n@*"])
)
"""Texts of words that each occur once, as long as the product allows and longer."""
TOLD: Final = re.compile(
    r"(To read (it|them|what the choices mean)|more): `?draftsman (show|questions)"
    r"|The full text is "
)
"""A notice of what is left out, with the place to read it."""


def _within_limits(message: Message) -> Message:
    """Return a message whose choices are as short as those of a question are."""
    if message.question is None:
        return message
    choices = [
        choice
        | {"label": choice["label"][:75], "description": (choice.get("description") or "")[:500]}
        for choice in message.question.choices
    ]
    return replace(message, question=replace(message.question, choices=choices))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(messages(MARKED, MARKED, lambda name, _: replace(BEN, name=name)))
def test_nothing_is_lost_without_a_notice_where_to_read_it(message: Message) -> None:
    message = _within_limits(message)
    said = _words(*_said(build_document(message)))
    printers = MEDIA | {"room": lambda message: render_plain(message, most=4000)}
    for medium, render in printers.items():
        text = render(message)
        assert said <= _words(text) or TOLD.search(text), medium


def _words(*texts: str) -> set[str]:
    """Return the marked words, also of a text that a medium breaks within a word."""
    return {word for text in texts for word in re.findall(r"t\d+n\d+e", "".join(text.split()))}


def test_a_message_that_is_too_long_for_slack_says_where_to_read_it() -> None:
    """Escapes make the text five times as long as it is."""
    message = EXAMPLES["question without choices"]
    assert message.question is not None
    text = slack(replace(message, question=replace(message.question, text="&" * 3000)))
    assert "The message is too long for this place, and the rest is left out." in text
    assert "To read it: `draftsman show D-7`" in text
    assert "[I'm on it]" in text


def _said(document: Document) -> Iterator[str]:
    yield from _texts(document)
    for part in document:
        if isinstance(part, Items):
            yield from (str(span) for item in part.items for span in item)


def test_choices_that_are_left_out_can_be_read_elsewhere() -> None:
    message = EXAMPLES["question with many choices"]
    (choices,) = (part for part in build_document(message) if isinstance(part, Choices))
    assert len(choices.items) == 120
    for text in (forge(message), render_card(message, NAMES)):
        assert "120. region 120" in text
    assert "<li>region 120</li></ol>" in html(message)


def test_hostile_text_has_no_effect_in_any_medium() -> None:
    hostile = [message for name, message in EXAMPLES.items() if "hostile" in name]
    assert len(hostile) == 6
    for message in hostile:
        assert HOSTILE not in forge(message)
        assert "\n/approve" not in forge(message)
        assert "<!everyone>" not in slack(message)


def test_a_comment_mentions_the_login_on_its_own_forge() -> None:
    """A person may have accounts on several forges, of which the first gets the messages."""
    message = EXAMPLES["question without choices"]
    logins = {"forge": ("github:benny",)}
    ben = Person("ben", frozenset({"responder"}), {"forge": "gitlab:ben"}, further_ids=logins)
    text = forge(replace(message, recipients=(ben,)))
    assert "For @benny" in text
