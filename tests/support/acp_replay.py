"""An agent that replays a recording of `acp_recording`, and refuses other messages of its client.

python -I -S acp_replay.py RECORDING RUN
"""

from __future__ import annotations

import json
import sys
from typing import Any


def same(received: Any, recorded: Any) -> bool:
    """Return whether a message is the recorded one, but for its texts."""
    if received.get("method") != recorded.get("method"):
        return False
    if "method" in received:
        return True
    return bool(received.get("result") == recorded.get("result"))


def main(path: str, run: str) -> None:
    """Replay a run: each line of the client in its turn, then the agent's lines until the next."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        lines = [line for line in map(json.loads, file) if line["run"] == int(run)]
    for line in lines:
        message = line["message"]
        if line["direction"] == "<":
            print(json.dumps(message), flush=True)  # noqa: T201
            continue
        text = sys.stdin.readline()
        if not text:
            return
        received = json.loads(text)
        if not same(received, message):
            sys.exit(f"expected {json.dumps(message)}, received {text}")
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
