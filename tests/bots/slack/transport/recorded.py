"""A payload of each kind, as Slack delivers them; none makes a job."""

from __future__ import annotations

from typing import Any, Final

from draftsman_bots.slack import ids

ANNA: Final = "U-ANNA"
_COMMON: Final[dict[str, Any]] = {
    "token": "verification",
    "api_app_id": "A000000001",
    "team": {"id": "T1", "domain": "fake", "enterprise_id": "E1", "enterprise_name": "Grid"},
    "user": {"id": ANNA, "username": "anna", "name": "anna", "team_id": "T1"},
    "enterprise": {"id": "E1", "name": "Grid"},
    "is_enterprise_install": False,
    "trigger_id": "1.T1.x000000001",
}
_BUTTON: Final = {
    "action_id": ids.APPROVE,
    "block_id": "b1",
    "type": "button",
    "action_ts": "1790000000.000300",
    "text": {"type": "plain_text", "text": "Approve", "emoji": True},
    "value": "q:1:1",
}
_BLOCKS: Final = [
    {"type": "section", "block_id": "s1", "text": {"type": "mrkdwn", "text": "Deploy?"}},
    {"type": "actions", "block_id": "b1", "elements": [_BUTTON]},
]
_MESSAGE: Final[dict[str, Any]] = {
    "type": "message",
    "user": ANNA,
    "text": "<@U0BOT> thanks",
    "ts": "1790000000.000100",
    "thread_ts": "1790000000.000050",
    "team": "T1",
    "files": [{"id": "F1", "name": "a.txt", "mimetype": "text/plain", "size": 3, "mode": "hosted"}],
    "blocks": _BLOCKS[:1],
}
_IN_MESSAGE: Final[dict[str, Any]] = {
    "container": {
        "type": "message",
        "message_ts": "1790000000.000100",
        "channel_id": "C1",
        "is_ephemeral": False,
        "thread_ts": "1790000000.000050",
    },
    "channel": {"id": "C1", "name": "general"},
    "state": {"values": {"b1": {"a1": {"type": "plain_text_input", "value": "x"}}}},
    "response_url": "http://127.0.0.1:9/response/R1",
    "message": _MESSAGE | {"blocks": _BLOCKS},
}
_VIEW: Final[dict[str, Any]] = {
    "id": "V1",
    "team_id": "T1",
    "type": "modal",
    "callback_id": ids.DENY_VIEW,
    "private_metadata": "q:1:1",
    "hash": "1.x",
    "app_installed_team_id": "T1",
    "title": {"type": "plain_text", "text": "Deny"},
    "blocks": [
        {
            "type": "input",
            "block_id": "text",
            "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
    "state": {"values": {"text": {"text": {"type": "plain_text_input", "value": "not today"}}}},
}


def _event(inner: dict[str, Any]) -> dict[str, Any]:
    return {
        "token": "verification",
        "team_id": "T1",
        "enterprise_id": "E1",
        "context_team_id": "T1",
        "api_app_id": "A000000001",
        "type": "event_callback",
        "event": inner,
        "event_id": "Ev1",
        "event_time": 1_790_000_000,
        "authorizations": [
            {"enterprise_id": "E1", "team_id": "T1", "user_id": "U0BOT", "is_bot": True}
        ],
        "is_ext_shared_channel": False,
    }


_POSTED: Final = _MESSAGE | {"channel": "C1", "channel_type": "channel", "event_ts": "1790000000.1"}
PAYLOADS: Final[dict[str, Any]] = {
    "message": _event(_POSTED),
    "mention": _event(_POSTED | {"type": "app_mention", "user_team": "T1", "source_team": "T1"}),
    "edit": _event({
        "type": "message",
        "subtype": "message_changed",
        "channel": "C1",
        "ts": "1790000000.000200",
        "message": _MESSAGE | {"edited": {"user": ANNA, "ts": "1790000000.000200"}},
        "previous_message": _MESSAGE | {"text": "before"},
    }),
    "deletion": _event({
        "type": "message",
        "subtype": "message_deleted",
        "channel": "C1",
        "ts": "1790000000.000200",
        "deleted_ts": "1790000000.000100",
        "previous_message": _MESSAGE,
    }),
    "reaction": _event({
        "type": "reaction_added",
        "user": ANNA,
        "reaction": "+1",
        "item": {"type": "message", "channel": "C1", "ts": "1790000000.000100"},
        "item_user": "U0BOT",
        "event_ts": "1790000000.000400",
    }),
    "stop": _event({
        "type": "agent_session_stopped",
        "user": ANNA,
        "channel": "C1",
        "thread_ts": "1790000000.000050",
        "streaming_message_ts": ["1790000000.000100"],
        "event_ts": "1790000000.000500",
    }),
    "home": _event({
        "type": "app_home_opened",
        "user": ANNA,
        "channel": "D1",
        "tab": "home",
        "view": {"id": "V2", "team_id": "T1", "type": "home"},
    }),
    "assistant": _event({
        "type": "assistant_thread_started",
        "assistant_thread": {
            "user_id": ANNA, "channel_id": "D1", "thread_ts": "1790000000.000050",
            "context": {"channel_id": "C1", "team_id": "T1"},
        },
    }),
    "revoked": _event({"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}}),
    "button": _COMMON | _IN_MESSAGE | {"type": "block_actions", "actions": [_BUTTON]},
    "select": _COMMON | _IN_MESSAGE | {
        "type": "block_actions",
        "actions": [
            {
                "action_id": ids.CHOOSE, "block_id": "q:1:1", "type": "static_select",
                "action_ts": "1790000000.000301",
                "selected_option": {"text": {"type": "plain_text", "text": "Red"}, "value": "1"},
            }
        ],
    },
    "suggestion": _COMMON | _IN_MESSAGE | {
        "type": "block_suggestion", "action_id": ids.CHOOSE, "block_id": "q:1:1", "value": "re",
    },
    "submission": _COMMON | {"type": "view_submission", "view": _VIEW, "response_urls": []},
    "new job": _COMMON | {
        "type": "view_submission",
        "view": _VIEW | {"callback_id": ids.NEW_JOB, "private_metadata": "slack:C1"},
    },
    "closed": _COMMON | {"type": "view_closed", "view": _VIEW, "is_cleared": False},
    "shortcut": _COMMON | {
        "type": "shortcut", "callback_id": ids.NEW_JOB, "action_ts": "1790000000.000500",
    },
    "message shortcut": _COMMON | _IN_MESSAGE | {
        "type": "message_action", "callback_id": ids.FROM_MESSAGE, "message_ts": "1790000000.0001",
    },
    "rate limit": {"type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1},
    "verification": {"type": "url_verification", "challenge": "c", "token": "verification"},
    "command": {
        "token": "verification", "team_id": "T1", "team_domain": "fake", "enterprise_id": "E1",
        "channel_id": "C1", "channel_name": "general", "user_id": ANNA, "user_name": "anna",
        "command": "/draftsman", "text": "status D-1", "api_app_id": "A000000001",
        "is_enterprise_install": "false", "trigger_id": "1.T1.x000000002",
        "response_url": "http://127.0.0.1:9/response/R2",
    },
}  # fmt: skip
