"""Slack's rules for blocks, elements and views: one table, with the published limits.

The lengths are those of Slack's block and element reference (docs.slack.dev/reference/block-kit),
and also checked by slack_sdk's model classes; the content of blocks is from the same pages, and
their surfaces from docs.slack.dev/blocks.json. The pages of cards and alerts leave out the length
of subtext and alerts, which are from Slack's Java SDK (pull request 1624). Blocks that no page
describes in full, such as `data_visualization`, are refused as unknown.
"""

from __future__ import annotations

from typing import Final

from draftsman_testing.slack.rule_types import (
    ANY,
    FLAG,
    STRINGS,
    Shape,
    Spec,
    block,
    block_list,
    choice,
    number,
    one_part,
    part_list,
    plain,
    string,
    text,
    url,
)

Fields = dict[str, Spec]

INPUTS: Final = (
    "plain_text_input", "url_text_input", "email_text_input", "number_input", "rich_text_input",
    "static_select", "multi_static_select", "external_select", "multi_external_select",
    "users_select", "multi_users_select", "conversations_select", "multi_conversations_select",
    "channels_select", "multi_channels_select", "checkboxes", "radio_buttons", "datepicker",
    "timepicker", "datetimepicker", "file_input",
)  # fmt: skip
MULTI: Final = tuple(kind for kind in INPUTS if kind.startswith("multi_"))
TEXT_INPUTS: Final = tuple(kind for kind in INPUTS if kind.endswith("_input"))
CHOICES: Final = tuple(kind for kind in INPUTS if kind not in TEXT_INPUTS)
ACTIONS: Final = ("button", "workflow_button", "overflow", "rich_text_input", *CHOICES)
ACCESSORIES: Final = ("button", "workflow_button", "overflow", "image", *CHOICES)
RICH_TEXT: Final = (
    "rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_preformatted",
)  # fmt: skip
ANYWHERE: Final = (
    "section", "divider", "header", "context", "actions", "image", "input", "rich_text", "video",
    "card",
)  # fmt: skip
CONTAINED: Final = tuple(kind for kind in ANYWHERE if kind != "input")
"""Blocks of a container; the page names none, so these are the ones that all surfaces have."""
SURFACES: Final[dict[str, tuple[str, ...]]] = {
    "message": (
        *ANYWHERE,
        "markdown",
        "file",
        "table",
        "data_table",
        "context_actions",
        "task_card",
        "plan",
        "carousel",
        "container",
    ),
    "modal": (*ANYWHERE, "alert"),
    "home": (*ANYWHERE, "carousel"),
}
BLOCKS_MOST: Final = {"message": 50, "modal": 100, "home": 100}
BLOCKS_SIZE: Final = 11_341
"""Characters of all blocks of a message as JSON, without markdown blocks. The limit is not
documented; this is the smallest size reported as rejected with `msg_blocks_too_long` (bolt-js issue
2867, there of the texts alone; bolt-js issue 2509 reports about 13,200).
"""
VIEW_BYTES: Final = 250_000
"""Size of a view as JSON."""
MARKDOWN_MOST: Final = 12_000
"""Characters of all markdown blocks of a message."""
TABLE_ROWS: Final = (1, 100)
DATA_ROWS: Final = (2, 101)
"""Rows of a data table, with its head."""
TABLE_COLUMNS: Final = 20
TABLE_SIZE: Final = 10_000
"""Characters of all cells of a data table."""


def _block(**fields: Spec) -> Fields:
    return {"block_id": string(255), **fields}


def _element(**fields: Spec) -> Fields:
    return {"action_id": string(255), "confirm": one_part("confirm"), **fields}


def _input(**fields: Spec) -> Fields:
    return _element(focus_on_load=FLAG, placeholder=plain(150), **fields)


def _field(**fields: Spec) -> Fields:
    return {
        "action_id": string(255), "focus_on_load": FLAG, "placeholder": plain(150),
        "dispatch_action_config": ANY, **fields,
    }  # fmt: skip


BLOCKS: Final[dict[str, Shape]] = {
    "section": Shape(
        _block(
            text=text(3000),
            fields=Spec("many", 10, of=("field",)),
            accessory=one_part(*ACCESSORIES),
            expand=FLAG,
        ),
        any_of=("text", "fields"),
    ),
    "divider": Shape(_block()),
    "header": Shape(_block(text=plain(150, need=True))),
    "context": Shape(_block(elements=part_list("image", "words", most=10, need=True))),
    "actions": Shape(_block(elements=part_list(*ACTIONS, most=25, need=True))),
    "image": Shape(
        _block(
            image_url=url(), slack_file=ANY, alt_text=string(2000, need=True), title=plain(2000)
        ),
        one_of=("image_url", "slack_file"),
    ),
    "input": Shape(
        _block(
            label=plain(2000, need=True),
            element=one_part(*INPUTS, need=True),
            hint=plain(2000),
            optional=FLAG,
            dispatch_action=FLAG,
        )
    ),
    "markdown": Shape(_block(text=string(need=True))),
    "rich_text": Shape(_block(elements=part_list(*RICH_TEXT, need=True, least=0))),
    "video": Shape(
        _block(
            video_url=url(need=True),
            thumbnail_url=url(need=True),
            alt_text=string(2000, need=True),
            title=plain(199, need=True),
            title_url=url(),
            author_name=string(50),
            description=plain(200),
            provider_name=string(),
            provider_icon_url=url(),
        )
    ),
    "file": Shape(_block(external_id=string(need=True), source=choice("remote", need=True))),
    "table": Shape(
        _block(
            rows=Spec("any", need=True),
            column_settings=part_list("column", most=TABLE_COLUMNS),
        )
    ),
    "data_table": Shape(
        _block(
            rows=Spec("any", need=True),
            caption=string(need=True),
            page_size=number(100, least=1),
            row_header_column_index=number(TABLE_COLUMNS - 1),
        )
    ),
    "context_actions": Shape(
        _block(elements=part_list("feedback_buttons", "icon_button", most=5, need=True))
    ),
    "task_card": Shape(
        _block(
            task_id=string(need=True),
            title=string(need=True),
            details=block("rich_text"),
            output=block("rich_text"),
            sources=part_list("url"),
            status=choice("pending", "in_progress", "complete", "error"),
        )
    ),
    "plan": Shape(_block(title=string(need=True), tasks=block_list("task_card"))),
    "alert": Shape(
        _block(
            text=text(200, need=True),
            level=choice("default", "info", "warning", "error", "success"),
        )
    ),
    "card": Shape(
        _block(
            hero_image=one_part("image"),
            icon=one_part("image"),
            title=text(150),
            subtitle=text(150),
            body=text(200),
            subtext=text(200),
            actions=part_list("button", most=3),
        ),
        any_of=("hero_image", "title", "actions", "body"),
    ),
    "carousel": Shape(_block(elements=block_list("card", most=10, need=True))),
    "container": Shape(
        _block(
            title=plain(150),
            rich_text_title=block("rich_text"),
            subtitle=text(150),
            child_blocks=block_list(*CONTAINED, most=10, need=True),
            width=choice("narrow", "standard", "wide", "full"),
            icon=one_part("image"),
            is_collapsible=FLAG,
            default_collapsed=FLAG,
            has_header_divider=FLAG,
        ),
        any_of=("title", "rich_text_title"),
    ),
}

_RICH: Final = {"elements": Spec("any", need=True), "border": number()}
CELLS: Final[dict[str, Shape]] = {
    "raw_text": Shape({"text": string(need=True, least=0)}),
    "raw_number": Shape({"value": Spec("any", need=True), "text": string()}),
    "rich_text": BLOCKS["rich_text"],
}
"""Cells of tables."""

ELEMENTS: Final[dict[str, Shape]] = {
    "button": Shape(
        _element(
            text=plain(75, need=True),
            value=string(2000, least=0),
            url=url(),
            style=choice("primary", "danger"),
            accessibility_label=string(75),
        )
    ),
    "workflow_button": Shape(
        _element(
            text=plain(75, need=True),
            workflow=Spec("any", need=True),
            style=choice("primary", "danger"),
            accessibility_label=string(75),
        )
    ),
    "feedback_buttons": Shape(
        {
            "action_id": string(255),
            "positive_button": one_part("feedback_button", need=True),
            "negative_button": one_part("feedback_button", need=True),
        }
    ),
    "icon_button": Shape(
        _element(
            icon=choice("trash", need=True),
            text=plain(75, need=True),
            value=string(2000, least=0),
            accessibility_label=string(75),
            visible_to_user_ids=Spec("strings", 10),
        )
    ),
    "url": Shape({"url": url(need=True), "text": string(need=True)}),
    "file_input": Shape(
        {"action_id": string(255), "filetypes": STRINGS, "max_files": number(10, least=1)}
    ),
    "rich_text_section": Shape({"elements": Spec("any", need=True)}),
    "rich_text_quote": Shape(_RICH),
    "rich_text_preformatted": Shape(_RICH | {"language": string()}),
    "rich_text_list": Shape(
        _RICH
        | {
            "style": choice("bullet", "ordered", need=True),
            "indent": number(),
            "offset": number(),
        }
    ),
    "overflow": Shape(_element(options=part_list("option", most=5, need=True))),
    "image": Shape(
        {"image_url": url(), "slack_file": ANY, "alt_text": string(2000, need=True)},
        one_of=("image_url", "slack_file"),
    ),
    "plain_text_input": Shape(
        _field(
            initial_value=string(3000, least=0),
            multiline=FLAG,
            min_length=number(3000),
            max_length=number(3000, least=1),
        )
    ),
    "url_text_input": Shape(_field(initial_value=string(3000, least=0))),
    "email_text_input": Shape(_field(initial_value=string(3000, least=0))),
    "number_input": Shape(
        _field(
            is_decimal_allowed=Spec("flag", need=True),
            initial_value=string(),
            min_value=string(),
            max_value=string(),
        )
    ),
    "rich_text_input": Shape(_field(initial_value=ANY)),
    "checkboxes": Shape(
        _element(
            options=part_list("rich_option", most=10, need=True),
            initial_options=part_list("rich_option"),
            focus_on_load=FLAG,
        )
    ),
    "radio_buttons": Shape(
        _element(
            options=part_list("rich_option", most=10, need=True),
            initial_option=one_part("rich_option"),
            focus_on_load=FLAG,
        )
    ),
    "datepicker": Shape(_input(initial_date=string(10))),
    "timepicker": Shape(_input(initial_time=string(5), timezone=string())),
    "datetimepicker": Shape(_element(initial_date_time=number(), focus_on_load=FLAG)),
    "static_select": Shape(
        _input(
            options=part_list("option", most=100),
            option_groups=part_list("group", most=100),
            initial_option=one_part("option"),
        ),
        one_of=("options", "option_groups"),
    ),
    "multi_static_select": Shape(
        _input(
            options=part_list("option", most=100),
            option_groups=part_list("group", most=100),
            initial_options=part_list("option"),
            max_selected_items=number(least=1),
        ),
        one_of=("options", "option_groups"),
    ),
    "external_select": Shape(_input(initial_option=one_part("option"), min_query_length=number())),
    "multi_external_select": Shape(
        _input(
            initial_options=part_list("option"),
            min_query_length=number(),
            max_selected_items=number(least=1),
        )
    ),
}
for _what in ("users", "conversations", "channels"):
    _one = _what.removesuffix("s")
    _more: Fields = {"response_url_enabled": FLAG}
    if _what == "conversations":
        _more |= {"default_to_current_conversation": FLAG, "filter": ANY}
    ELEMENTS[f"{_what}_select"] = Shape(_input(**{f"initial_{_one}": string()}, **_more))
    ELEMENTS[f"multi_{_what}_select"] = Shape(
        _input(**{f"initial_{_what}": STRINGS}, **_more, max_selected_items=number(least=1))
    )

PARTS: Final[dict[str, Shape]] = {
    "option": Shape(
        {
            "text": plain(75, need=True),
            "value": string(150, need=True),
            "description": plain(75),
            "url": url(),
        },
        typed=False,
    ),
    "rich_option": Shape(
        {"text": text(75, need=True), "value": string(150, need=True), "description": text(75)},
        typed=False,
    ),
    "group": Shape(
        {
            "label": plain(75, need=True),
            "options": part_list("option", most=100, need=True),
        },
        typed=False,
    ),
    "feedback_button": Shape(
        {
            "text": plain(75, need=True),
            "value": string(2000, need=True),
            "accessibility_label": string(75),
        },
        typed=False,
    ),
    "column": Shape({"align": choice("left", "center", "right"), "is_wrapped": FLAG}, typed=False),
    "confirm": Shape(
        {
            "title": plain(100, need=True),
            "text": text(300, need=True),
            "confirm": plain(30, need=True),
            "deny": plain(30, need=True),
            "style": choice("primary", "danger"),
        },
        typed=False,
    ),
}

_VIEW: Final[Fields] = {
    "private_metadata": string(3000, least=0),
    "callback_id": string(255, least=0),
    "external_id": string(255, least=0),
}
VIEWS: Final[dict[str, Shape]] = {
    "modal": Shape(
        {
            "title": plain(24, need=True),
            "submit": plain(24),
            "close": plain(24),
            "clear_on_close": FLAG,
            "notify_on_close": FLAG,
            "submit_disabled": FLAG,
            **_VIEW,
        }
    ),
    "home": Shape(_VIEW),
}
