"""chat.startStream, chat.appendStream and chat.stopStream, and the status of a thread.

The rules are those of docs.slack.dev/reference/methods/chat.startStream, chat.appendStream,
chat.stopStream and assistant.threads.setStatus. Slack documents neither how long a stream lives nor
the effect of chat.update on it: users observed five minutes, then `message_not_in_streaming_state`
(slackapi/python-slack-sdk#1859), and `streaming_state_conflict` for an update of an open stream.
"""

from __future__ import annotations

import json
from typing import Any, Final

from draftsman_testing.slack.api_errors import ApiError, invalid_arguments
from draftsman_testing.slack.block_validation import message_blocks
from draftsman_testing.slack.message_store import is_streaming, put
from draftsman_testing.slack.methods.chat import body, by_bot
from draftsman_testing.slack.methods.registry import Args, method, visible_channel, writable_channel
from draftsman_testing.slack.world import Channel, Json, ThreadStatus, World

TEXT_MOST: Final = 12_000
"""Characters of `markdown_text`."""
FIELD_MOST: Final = 256
"""Characters of a text of a task or plan; measurements of users found no such limit."""
STREAM_BYTES: Final = 10_000
"""An estimate of the size of a stream's message: Slack publishes no limit."""
TASK_STATES: Final = {"pending", "in_progress", "complete", "error"}
LOADING_MOST: Final = 10


@method("assistant.threads.setStatus", "chat:write", "assistant:write")
def set_status(world: World, args: Args) -> Json:
    """Set the status of a thread; an empty status clears it."""
    channel = visible_channel(world, args.need("channel_id"))
    thread = args.need("thread_ts")
    if "status" not in args:
        raise invalid_arguments("invalid_arguments", ["missing required field: status"])
    loading = args.json("loading_messages", "invalid_arguments")
    if loading is not None and (not isinstance(loading, list) or len(loading) > LOADING_MOST):
        raise invalid_arguments("invalid_arguments", ["loading_messages: at most 10"])
    if channel.id in world.no_status:
        raise ApiError("method_not_supported_for_channel_type")
    if thread not in channel.messages:
        raise ApiError("invalid_thread_ts")
    world.statuses[channel.id, thread] = ThreadStatus(str(args["status"]), world.now())
    return {}


SESSION_STATES: Final = {"active", "processing", "suspended", "closed"}
TITLE_MOST: Final = 200


@method("agents.sessions.setStatus", "chat:write")
def set_session(world: World, args: Args) -> Json:
    """Set the state of the session of an agent in a thread, and begin it if there is none.

    docs.slack.dev/reference/methods/agents.sessions.setStatus: only apps that are declared as
    agents have sessions.
    """
    channel = visible_channel(world, args.need("channel_id"))
    thread = args.need("thread_ts")
    state = args.need("status")
    if state not in SESSION_STATES:
        raise invalid_arguments("invalid_arguments", ["status: not an acceptable value"])
    if len(args.maybe("title") or "") > TITLE_MOST:
        raise invalid_arguments("invalid_arguments", ["title: at most 200 characters"])
    if "assistant:write" not in world.scopes:
        raise ApiError("feature_not_enabled")
    if thread not in channel.messages:
        raise ApiError("invalid_thread_ts")
    world.sessions.setdefault((channel.id, thread), []).append(state)
    return {"status": state}


@method("chat.startStream", "chat:write")
def start_stream(world: World, args: Args) -> Json:
    """Begin a message that grows; in a channel it needs its reader."""
    channel = writable_channel(world, args.need("channel"))
    thread = args.need("thread_ts")
    if channel.id in world.no_streams:
        raise ApiError("channel_type_not_supported")
    if channel.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if args.maybe(name) is None:
                raise ApiError(f"missing_{name}")
        if args["recipient_user_id"] not in world.users:
            raise ApiError("user_not_found")
    if args.get("task_display_mode", "timeline") not in {"timeline", "plan"}:
        raise invalid_arguments("invalid_arguments", ["task_display_mode: timeline, plan"])
    parent = channel.messages.get(thread)
    if parent is None or parent.get("subtype") == "tombstone":
        raise ApiError("invalid_thread_ts")
    mode, text, chunks = _content(args, required=False)
    stream: Json = {"mode": mode, "open": True, "plan": "", "tasks": {}, "began": world.now()}
    _grow(stream, text, chunks)
    message = put(world, channel, by_bot(world) | {"text": text, "stream": stream}, thread)
    return {"channel": channel.id, "ts": message["ts"]}


@method("chat.appendStream", "chat:write")
def append_stream(world: World, args: Args) -> Json:
    channel, message = _open_stream(world, args)
    mode, text, chunks = _content(args, required=True)
    if mode != message["stream"]["mode"]:
        raise ApiError("streaming_mode_mismatch")
    _grow(message["stream"], text, chunks)
    message["text"] += text
    return {"channel": channel.id, "ts": message["ts"]}


@method("chat.stopStream", "chat:write")
def stop_stream(world: World, args: Args) -> Json:
    channel, message = _open_stream(world, args)
    mode, text, chunks = _content(args, required=False)
    if (text or chunks) and mode != message["stream"]["mode"]:
        raise ApiError("streaming_mode_mismatch")
    if args.get("session_status", "active") not in {"active", "processing", "suspended", "closed"}:
        raise invalid_arguments("invalid_arguments", ["session_status"])
    final = body(Args({name: args[name] for name in ("blocks", "metadata") if name in args}))
    _grow(message["stream"], text, chunks)
    message["stream"]["open"] = False
    message.update(final, text=message["text"] + text)
    return {"channel": channel.id, "ts": message["ts"], "message": message}


def _open_stream(world: World, args: Args) -> tuple[Channel, Json]:
    channel = visible_channel(world, args.need("channel"))
    message = channel.messages.get(args.need("ts"))
    if message is None or message.get("subtype") == "tombstone":
        raise ApiError("message_not_found")
    if message.get("bot_id") != world.bot:
        raise ApiError("message_not_owned_by_app")
    if message.get("stream", {}).get("stopped"):
        raise ApiError("stopped_by_user")
    if not is_streaming(world, message):
        raise ApiError("message_not_in_streaming_state")
    return channel, message


def _content(args: Args, *, required: bool) -> tuple[str, str, list[Json]]:
    """Return the mode, the text and the chunks of a call."""
    text = args.maybe("markdown_text")
    chunks = args.json("chunks", "invalid_chunks")
    if text is not None and chunks is not None:
        raise ApiError("cannot_provide_both_markdown_text_and_chunks")
    if text is None and not chunks and required:
        raise ApiError("no_text")
    if text is not None and len(text) > TEXT_MOST:
        raise ApiError("msg_too_long")
    if chunks is not None and not isinstance(chunks, list):
        raise ApiError("invalid_chunks")
    for chunk in chunks or []:
        _check(chunk)
    return "text" if text is not None else "chunks", text or "", chunks or []


def _check(chunk: Any) -> None:
    kind = chunk.get("type") if isinstance(chunk, dict) else None
    if kind == "blocks":
        message_blocks(chunk.get("blocks"))
        return
    fields = {
        "markdown_text": ("text",),
        "plan_update": ("title",),
        "task_update": ("id", "title", "status"),
    }
    required = fields.get(str(kind))
    if required is None or any(not isinstance(chunk.get(name), str) for name in required):
        raise ApiError("invalid_chunks")
    if any(not chunk[name] for name in required):
        raise ApiError("invalid_chunks")
    optional = {"details", "output", "sources"} if kind == "task_update" else set()
    if chunk.keys() - {"type", *required, *optional}:
        raise ApiError("invalid_chunks")
    if kind == "task_update" and chunk["status"] not in TASK_STATES:
        raise ApiError("invalid_chunks")
    texts = [chunk.get(name, "") for name in ("id", "title", "details", "output")]
    if kind != "markdown_text" and any(len(text) > FIELD_MOST for text in texts):
        raise ApiError("invalid_chunks")


def _grow(stream: Json, text: str, chunks: list[Json]) -> None:
    """Apply chunks: title and status of a task are replaced, its details and output grow."""
    plan = stream["plan"]
    tasks = {key: dict(task) for key, task in stream["tasks"].items()}
    for chunk in chunks:
        if chunk["type"] == "plan_update":
            plan = chunk["title"]
        elif chunk["type"] == "task_update":
            task = tasks.setdefault(chunk["id"], {"details": "", "output": ""})
            task |= {"title": chunk["title"], "status": chunk["status"]}
            for name in ("details", "output"):
                task[name] += chunk.get(name, "")
    if len(json.dumps([plan, tasks, text], ensure_ascii=False).encode()) > STREAM_BYTES:
        raise ApiError("msg_too_long")
    stream |= {"plan": plan, "tasks": tasks}
