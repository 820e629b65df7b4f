"""The size of a message: the limits of Slack for all its blocks together. Pure.

Slack refuses a message whose blocks are too large together with `msg_blocks_too_long`. The limit is
not documented; public reports of the error begin at 11,341 characters (bolt-js issue 2867) and
name about 13,200 (bolt-js issue 2509).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from draftsman_bots.slack.deliveries.blocks import MAX_BLOCKS, Block
from draftsman_bots.text import utf16_length

MAX_SIZE: Final = 11_000
"""Characters of all blocks as JSON: below the smallest size reported as rejected."""
_CONTROLS: Final = frozenset({"actions"})


def size(blocks: Sequence[Block]) -> int:
    """Return the size of the blocks as JSON, in UTF-16 units."""
    return utf16_length(json.dumps(blocks, ensure_ascii=False, separators=(",", ":")))


def fits(blocks: Sequence[Block]) -> bool:
    """Return whether Slack accepts these blocks as one message."""
    return len(blocks) <= MAX_BLOCKS and size(blocks) <= MAX_SIZE


def drop_to_fit(blocks: Iterable[Block]) -> list[Block]:
    """Drop the last texts until the blocks fit; the first block and the controls stay."""
    remaining = list(blocks)
    while not fits(remaining):
        text_indexes = [
            index for index, block in enumerate(remaining) if block["type"] not in _CONTROLS
        ]
        if len(text_indexes) < 2:
            break
        del remaining[text_indexes[-1]]
    return remaining
