"""Validation of blocks and views: at each limit, and above it."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk.models import blocks as sdk
from slack_sdk.models.views import View

from draftsman_testing.slack.api_errors import ApiError
from draftsman_testing.slack.block_rules import BLOCKS, ELEMENTS, PARTS, VIEWS
from draftsman_testing.slack.block_validation import message_blocks, options, surface, whole_view
from draftsman_testing.slack.rule_types import Spec
from tests.support.cases import cases

Json = dict[str, Any]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def section(text: str = "a", **more: Any) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def button(**more: Any) -> Json:
    return {"type": "button", "text": plain("Go"), "action_id": "go"} | more


def actions(*elements: Any, **more: Any) -> Json:
    return {"type": "actions", "elements": list(elements), **more}


def select(count: int = 1, **more: Any) -> Json:
    return {"type": "static_select", "action_id": "pick", "options": some(count)} | more


def some(count: int) -> list[Json]:
    return [option(str(number)) for number in range(count)]


def option(value: str, text: str = "a") -> Json:
    return {"text": plain(text), "value": value}


def field(element: Json | None = None, label: str = "a", **more: Any) -> Json:
    result = element or {"type": "plain_text_input", "action_id": "text"}
    return {"type": "input", "label": plain(label), "element": result, **more}


def confirm(**more: Any) -> Json:
    return {
        "title": plain("a"), "text": plain("a"), "confirm": plain("a"), "deny": plain("a"),
    } | more  # fmt: skip


def card(**more: Any) -> Json:
    return {"type": "card", "title": plain("a")} | more


def task(**more: Any) -> Json:
    return {"type": "task_card", "task_id": "1", "title": "a", "status": "pending"} | more


def rich(text: str = "a") -> Json:
    words = {"type": "text", "text": text}
    section = {"type": "rich_text_section", "elements": [words]}
    return {"type": "rich_text", "elements": [section]}


def table(rows: int = 2, columns: int = 2, cell: Any = None, **more: Any) -> Json:
    row = [cell or {"type": "raw_text", "text": "a"}] * columns
    return {"type": "table", "rows": [row] * rows, **more}


def data_table(rows: int = 2, text: str = "a", head: str = "a", **more: Any) -> Json:
    texts = [head, *[text] * (rows - 1)]
    cells = [[{"type": "raw_text", "text": each}] for each in texts]
    return {"type": "data_table", "caption": "a", "rows": cells} | more


def container(*blocks: Json, **more: Any) -> Json:
    return {"type": "container", "title": plain("a"), "child_blocks": list(blocks)} | more


def feedback(**more: Any) -> Json:
    choice = {"text": plain("a"), "value": "1"}
    buttons = {"positive_button": choice, "negative_button": choice | more}
    return {"type": "feedback_buttons", "action_id": "a", **buttons}


def trash(**more: Any) -> Json:
    return {"type": "icon_button", "icon": "trash", "text": plain("a")} | more


def quick(*elements: Json) -> Json:
    return {"type": "context_actions", "elements": list(elements)}


def many_buttons(count: int) -> Json:
    return actions(*(button(action_id=str(number)) for number in range(count)))


A = "a"
SOURCE = {"type": "url", "url": "https://a.b", "text": "a"}
GROUP = {"label": plain(A), "options": [option("1")]}
LIMITS: dict[str, tuple[int, Any]] = {
    "section text": (3000, lambda n: section(A * n)),
    "section fields": (10, lambda n: {"type": "section", "fields": [plain(A)] * n}),
    "section field": (2000, lambda n: {"type": "section", "fields": [plain(A * n)]}),
    "header": (150, lambda n: {"type": "header", "text": plain(A * n)}),
    "markdown": (12_000, lambda n: {"type": "markdown", "text": A * n}),
    "block_id": (255, lambda n: section(block_id=A * n)),
    "action_id": (255, lambda n: actions(button(action_id=A * n))),
    "actions elements": (25, many_buttons),
    "context elements": (10, lambda n: {"type": "context", "elements": [plain(A)] * n}),
    "button text": (75, lambda n: actions(button(text=plain(A * n)))),
    "button value": (2000, lambda n: actions(button(value=A * n))),
    "button url": (3000, lambda n: actions(button(url="https://" + A * (n - 8)))),
    "options": (100, lambda n: actions(select(n))),
    "option text": (75, lambda n: actions(select(options=[option("1", A * n)]))),
    "option value": (150, lambda n: actions(select(options=[option(A * n)]))),
    "option groups": (
        100,
        lambda n: actions({
            "type": "static_select", "action_id": "pick",
            "option_groups": [GROUP] * n,
        }),
    ),
    "placeholder": (150, lambda n: actions(select(placeholder=plain(A * n)))),
    "overflow options": (
        5, lambda n: actions({"type": "overflow", "options": some(n)}),
    ),
    "confirm title": (100, lambda n: actions(button(confirm=confirm(title=plain(A * n))))),
    "confirm text": (300, lambda n: actions(button(confirm=confirm(text=plain(A * n))))),
    "confirm button": (30, lambda n: actions(button(confirm=confirm(deny=plain(A * n))))),
    "input label": (2000, lambda n: field(label=A * n)),
    "input hint": (2000, lambda n: field(hint=plain(A * n))),
    "checkboxes": (
        10, lambda n: actions({"type": "checkboxes", "options": some(n)}),
    ),
    "table rows": (100, table),
    "table columns": (20, lambda n: table(1, n)),
    "table settings": (20, lambda n: table(column_settings=[{"align": "left"}] * n)),
    "data table rows": (101, data_table),
    "data table page": (100, lambda n: data_table(page_size=n)),
    "data table size": (10_000, lambda n: data_table(head="", text=A * n)),
    "quick actions": (5, lambda n: quick(*(trash(action_id=str(i)) for i in range(n)))),
    "icon button readers": (10, lambda n: quick(trash(visible_to_user_ids=["U1"] * n))),
    "feedback value": (2000, lambda n: quick(feedback(value=A * n))),
    "feedback text": (75, lambda n: quick(feedback(text=plain(A * n)))),
    "card title": (150, lambda n: card(title=plain(A * n))),
    "card subtitle": (150, lambda n: card(subtitle=plain(A * n))),
    "card body": (200, lambda n: card(body=plain(A * n))),
    "card actions": (3, lambda n: card(actions=[button(action_id=str(i)) for i in range(n)])),
    "cards": (10, lambda n: {"type": "carousel", "elements": [card()] * n}),
    "container title": (150, lambda n: container(section(), title=plain(A * n))),
    "contained blocks": (10, lambda n: container(*[section()] * n)),
    "image alt text": (
        2000, lambda n: {"type": "image", "image_url": "https://a.example", "alt_text": A * n},
    ),
}  # fmt: skip


@cases("name", LIMITS)
def test_a_block_may_be_at_its_limit_and_not_over_it(name: str) -> None:
    limit, make = LIMITS[name]
    assert message_blocks([make(limit)])
    with pytest.raises(ApiError) as caught:
        message_blocks([make(limit + 1)])
    assert caught.value.error == "invalid_blocks"
    assert len(caught.value.more["errors"]) == 1
    over = (f"less than {limit + 1} ", f"no more than {limit} ", f"and {limit}")
    assert any(part in caught.value.more["errors"][0] for part in over)


BAD: dict[str, tuple[Any, str]] = {
    "a task of a wrong status": (task(status="late"), "must be one of: pending, in_progress"),
    "a task without a title": (
        {"type": "task_card", "task_id": "1"}, "missing required field: title",
    ),
    "a source without a URL": (
        task(sources=[{"type": "url", "text": "a"}]), "missing required field: url",
    ),
    "details that are no rich text": (task(details=section()), "unsupported type: section"),
    "a plan of sections": (
        {"type": "plan", "title": "a", "tasks": [section()]}, "unsupported type: section",
    ),
    "a card of nothing": ({"type": "card", "subtitle": plain("a")}, "must define either"),
    "a carousel of sections": (
        {"type": "carousel", "elements": [section()]}, "unsupported type: section",
    ),
    "an empty carousel": ({"type": "carousel", "elements": []}, "no less than 1 items"),
    "an alert in a message": ({"type": "alert", "text": plain("a")}, "unsupported type: alert"),
    "a container in a container": (container(container()), "unsupported type: container"),
    "a container without a title": (
        {"type": "container", "child_blocks": [section()]}, "must define either",
    ),
    "a container that folds with a line": (
        container(section(), is_collapsible=True, has_header_divider=True),
        "cannot be set when is_collapsible is true",
    ),
    "a table without rows": (table(rows=0), "no less than 1 items"),
    "rows that are no lists": (table(rows=1) | {"rows": [{}]}, "must be an array of arrays"),
    "a cell of a section": (table(cell=section(), rows=1, columns=1), "unsupported type: section"),
    "a data table without a head": (data_table(rows=1), "no less than 2 items"),
    "rich text in a head": (
        data_table() | {"rows": [[rich()], [rich()]]}, "unsupported type: rich_text",
    ),
    "rows of different lengths": (
        data_table() | {"rows": [table()["rows"][0], table()["rows"][0][:1]]},
        "as many cells as the first row",
    ),
    "a button among quick actions": (quick(button()), "unsupported type: button"),
    "an icon that is none": (quick(trash(icon="star")), "must be one of: trash"),
    "a chart": ({"type": "data_visualization"}, "unsupported type: data_visualization"),
    "an unknown block": ({"type": "banner"}, "type: banner [json-pointer:/blocks/0/type]"),
    "a block without type": ({}, "missing required field: type [json-pointer:/blocks/0]"),
    "no text in a section": ({"type": "section"}, "must define either `text` or `fields`"),
    "an empty text": (section(""), "more than 0 characters [json-pointer:/blocks/0/text/text]"),
    "a string for a text": ({"type": "header", "text": "a"}, "must provide an object"),
    "mrkdwn in a header": (
        {"type": "header", "text": {"type": "mrkdwn", "text": "a"}}, "must be one of: plain_text",
    ),
    "a text of no kind": ({"type": "section", "text": {"text": "a"}}, "must be one of"),
    "a text that is a number": (
        {"type": "header", "text": {"type": "plain_text", "text": 1}}, "must be a string",
    ),
    "emoji in mrkdwn": (
        {"type": "section", "text": {"type": "mrkdwn", "text": "a", "emoji": True}},
        "invalid additional property: emoji",
    ),
    "a property nobody knows": (section(colour="red"), "invalid additional property: colour"),
    "a button without a text": (
        actions({"type": "button", "action_id": "go"}), "missing required field: text",
    ),
    "a button of a wrong style": (actions(button(style="blue")), "must be one of: primary, danger"),
    "a button with a bad URL": (actions(button(url="nonsense")), "must be a valid URL"),
    "no elements": (actions(), "no less than 1 items allowed"),
    "an input in actions": (actions(field()["element"]), "unsupported type: plain_text_input"),
    "a button in a context": (
        {"type": "context", "elements": [button()]}, "unsupported type: button",
    ),
    "a button in an input": (field(button()), "unsupported type: button"),
    "an action_id twice": (actions(button(), button()), "`action_id` already exists"),
    "a select without options": (
        actions({"type": "static_select", "action_id": "a"}), "must define exactly one of",
    ),
    "a select with both": (actions(select(option_groups=[GROUP])), "must define exactly one of"),
    "an initial option from elsewhere": (
        actions(select(initial_option=option("9"))), "must exactly match",
    ),
    "an option without a value": (
        actions(select(options=[{"text": plain("a")}])), "missing required field: value",
    ),
    "a flag that is a word": (field(optional="yes"), "must be a boolean"),
    "an image of nothing": ({"type": "image", "alt_text": "a"}, "must define exactly one of"),
    "elements that are none": (actions("go"), "must provide an object"),
    "elements in no list": ({"type": "actions", "elements": {}}, "must be an array"),
}  # fmt: skip


@cases("name", BAD)
def test_invalid_block_is_refused_with_one_reason(name: str) -> None:
    block, reason = BAD[name]
    with pytest.raises(ApiError) as caught:
        message_blocks([block])
    assert len(caught.value.more["errors"]) == 1
    assert reason in caught.value.more["errors"][0]


@cases(
    "block",
    [
        task(details=rich(), output=rich(), sources=[SOURCE]),
        {"type": "plan", "title": "a", "tasks": [task(), task(task_id="2")]},
        table(cell=rich(), column_settings=[{"align": "right", "is_wrapped": True}]),
        data_table(rows=3, row_header_column_index=0),
        card(hero_image={"type": "image", "image_url": "https://a.b", "alt_text": "a"}),
        container(section(), card(), is_collapsible=True, default_collapsed=True, width="wide"),
        quick(feedback(), trash()),
        actions({"type": "workflow_button", "text": plain("a"), "workflow": {"trigger": {}}}),
        actions({"type": "multi_users_select", "action_id": "a"}),
    ],
)  # fmt: skip
def test_each_newer_block_is_accepted(block: Json) -> None:
    assert message_blocks([block])


def test_a_message_has_a_single_table() -> None:
    assert [*surface("message", [table(), table()])] == [
        "only_one_table_allowed [json-pointer:/blocks]"
    ]


def test_a_block_is_only_on_its_surfaces() -> None:
    alert = {"type": "alert", "text": plain("a"), "level": "warning"}
    assert not [*surface("modal", [alert])]
    carousel = {"type": "carousel", "elements": [card()]}
    assert not [*surface("home", [carousel])]
    for block, kind in ((alert, "home"), (carousel, "modal"), (task(), "home"), (table(), "modal")):
        assert "unsupported type" in next(surface(kind, [block]))


def test_each_block_and_element_of_the_sdk_is_known() -> None:
    unknown = {"call", "auth_provider"}  # those of other surfaces, which no app of ours has
    kinds = {str(vars(kind)["type"]) for kind in sdk.Block.__subclasses__()}
    assert kinds - BLOCKS.keys() == unknown


def test_blocks_have_a_total_limit() -> None:
    assert message_blocks([section()] * 50)
    assert [*surface("message", [section()] * 51)] == [
        "no more than 50 items allowed [json-pointer:/blocks]"
    ]
    twice = [section(block_id="a"), section(block_id="a")]
    assert "`block_id` already exists" in next(surface("message", twice))
    long = [{"type": "markdown", "text": "a" * 6001}] * 2
    assert "less than 12001" in next(surface("message", long))


@cases("blocks", [None, "a", {}, [1], ["a"]])
def test_blocks_that_are_not_a_list_have_their_own_error(blocks: object) -> None:
    with pytest.raises(ApiError) as caught:
        message_blocks(blocks)
    assert caught.value.error == "invalid_blocks_format"


def modal(**more: Any) -> Json:
    return {"type": "modal", "title": plain("a"), "blocks": [section()]} | more


@cases(
    ("limit", "make"),
    [
        (24, lambda n: modal(title=plain(A * n))),
        (24, lambda n: modal(submit=plain(A * n))),
        (24, lambda n: modal(close=plain(A * n))),
        (3000, lambda n: modal(private_metadata=A * n)),
        (255, lambda n: modal(callback_id=A * n)),
        (255, lambda n: modal(external_id=A * n)),
        (100, lambda n: modal(blocks=[section()] * n)),
    ],
)
def test_a_view_may_be_at_its_limit_and_not_over_it(limit: int, make: Any) -> None:
    assert whole_view(make(limit), ("modal",))
    with pytest.raises(ApiError) as caught:
        whole_view(make(limit + 1), ("modal",))
    assert caught.value.error == "invalid_arguments"
    assert "[json-pointer:/view/" in caught.value.more["response_metadata"]["messages"][0]


@cases(
    "view",
    [
        None, {}, {"type": "modal"}, modal(type="home"), modal(title="a"), modal(blocks="a"),
        modal(blocks=[field()]), modal(colour="red"),
        modal(blocks=[{"type": "markdown", "text": "a"}]),
        {"type": "modal", "blocks": []},
    ],
)  # fmt: skip
def test_invalid_view_is_refused(view: object) -> None:
    with pytest.raises(ApiError) as caught:
        whole_view(view, ("modal",))
    assert caught.value.error == "invalid_arguments"


def test_a_view_with_an_input_needs_a_submit() -> None:
    assert whole_view(modal(blocks=[field()], submit=plain("Send")), ("modal",))


def test_external_options_are_checked_by_the_same_rules() -> None:
    assert not [*options({"options": [option(str(number)) for number in range(100)]})]
    assert [*options({"options": [option("1")] * 101})]
    assert [*options({"options": [option("1", "a" * 76)]})]
    assert [*options({})]
    assert [*options(None)]


def test_limits_match_those_of_the_sdk() -> None:
    def most(spec: Spec) -> int | None:
        return spec.most

    section_fields = BLOCKS["section"].fields
    select_fields = ELEMENTS["static_select"].fields
    quick_fields = BLOCKS["context_actions"].fields
    container_fields = BLOCKS["container"].fields
    pairs = [
        (most(section_fields["fields"]), sdk.SectionBlock.fields_max_length),
        (most(section_fields["text"]), sdk.SectionBlock.text_max_length),
        (most(BLOCKS["header"].fields["text"]), sdk.HeaderBlock.text_max_length),
        (most(BLOCKS["actions"].fields["elements"]), sdk.ActionsBlock.elements_max_length),
        (most(BLOCKS["context"].fields["elements"]), sdk.ContextBlock.elements_max_length),
        (most(BLOCKS["input"].fields["label"]), sdk.InputBlock.label_max_length),
        (most(BLOCKS["divider"].fields["block_id"]), sdk.Block.block_id_max_length),
        (most(ELEMENTS["button"].fields["text"]), sdk.ButtonElement.text_max_length),
        (most(ELEMENTS["button"].fields["value"]), sdk.ButtonElement.value_max_length),
        (most(ELEMENTS["button"].fields["url"]), sdk.ButtonElement.url_max_length),
        (most(ELEMENTS["button"].fields["action_id"]), sdk.ButtonElement.action_id_max_length),
        (most(select_fields["options"]), sdk.StaticSelectElement.options_max_length),
        (most(ELEMENTS["overflow"].fields["options"]), sdk.OverflowMenuElement.options_max_length),
        (most(PARTS["option"].fields["text"]), sdk.Option.label_max_length),
        (most(PARTS["option"].fields["value"]), sdk.Option.value_max_length),
        (most(quick_fields["elements"]), sdk.ContextActionsBlock.elements_max_length),
        (most(BLOCKS["card"].fields["title"]), sdk.CardBlock.title_max_length),
        (most(BLOCKS["card"].fields["subtitle"]), sdk.CardBlock.subtitle_max_length),
        (most(BLOCKS["card"].fields["body"]), sdk.CardBlock.body_max_length),
        (most(BLOCKS["carousel"].fields["elements"]), sdk.CarouselBlock.elements_max_length),
        (most(container_fields["title"]), sdk.ContainerBlock.title_max_length),
        (most(container_fields["child_blocks"]), sdk.ContainerBlock.child_blocks_max_length),
        (most(PARTS["confirm"].fields["title"]), sdk.ConfirmObject.title_max_length),
        (most(PARTS["confirm"].fields["text"]), sdk.ConfirmObject.text_max_length),
        (most(PARTS["confirm"].fields["deny"]), sdk.ConfirmObject.deny_max_length),
        (most(VIEWS["modal"].fields["title"]), View.title_max_length),
        (most(VIEWS["modal"].fields["submit"]), View.submit_max_length),
        (most(VIEWS["modal"].fields["private_metadata"]), View.private_metadata_max_length),
        (most(VIEWS["modal"].fields["callback_id"]), View.callback_id_max_length),
    ]  # fmt: skip
    assert [ours for ours, _ in pairs] == [theirs for _, theirs in pairs]
