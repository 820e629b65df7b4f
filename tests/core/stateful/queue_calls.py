"""The calls of a random example of the queues: their arguments, and how often each is made."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from tests.core.stateful.model.groups import GROUPS
from tests.core.stateful.model.queues import Request
from tests.core.stateful.world import CUTS, QUEUES, TYPES

SHOP = "git.example.org/x/shop"
WEB = "git.example.org/x/web"
LIMITS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"type": {"noop": {"running": 2}}, "repo": {"*": {"running": 1}}},
    {"all": {"running": 2}, "repo": {"shop": {"running": 1}}, "type": {"*": {"running": 2}}},
    {"queue": {"one": {"rate": "2/1m"}}, "repo": {"*": {"running": 2}}},
    {"type": {"noop": {"rate": "2/1m", "burst": 2}}, "queue": {"*": {"running": 3}}},
    {
        "concurrency_key": {"*": {"release_while_waiting": True}},
        "repo": {"*": {"running": 1, "rate": "2/30s"}},
    },
    {"concurrency_key": {"*": {"rate": "1/20s", "burst": 2}}, "type": {"noop": {"running": 1}}},
    {"queue": {"one": {"partition": "repo"}, "two": {"partition": "type", "running": 2}}},
    {"queue": {"*": {"partition": "repo"}}, "all": {"rate": "2/1m", "burst": 2}},
)
"""Settings of `[limits]`. A bucket has the same period in each of them."""
CONDITIONS: Final = ("success", "success", "failure", "any")
ENDS: Final = (
    "completed",
    "completed",
    "failed",
    "failed",
    "retrying",
    "resumed",
    "scheduled",
    "waiting_for_input",
)
UNFINISHED_ENDS: Final = ("retrying", "resumed", "scheduled")
"""Ends of a run after which the job runs again."""
MOMENTS: Final = ("due", "due", "almost", "almost", "half", "half", 1.0, 20.0, 60.0, 300.0)
"""Time that passes, in seconds: until the next start of a rate or the next wake-up, or less."""
_MIXES: Final = {
    "queues": {
        "submit": 6,
        "work": 6,
        "move": 3,
        "pause": 1,
        "reserve": 2,
        "time": 3,
        "control": 4,
    },
    "keys": {"submit": 6, "work": 9, "move": 5, "time": 5, "reserve": 1, "control": 1},
    "limits": {
        "submit": 7,
        "work": 7,
        "move": 1,
        "time": 6,
        "burst": 2,
        "limits": 1,
        "pause": 1,
        "control": 1,
    },
    "groups": {"members": 6, "work": 10, "outrun": 2, "time": 2, "control": 5},
    "workflows": {"family": 8, "work": 9, "move": 1, "time": 2, "control": 4},
    "fan_out": {"submit": 3, "fan_out": 9, "work": 11, "time": 2, "reserve": 1, "control": 4},
}
"""Weights of the calls; an example has one of these mixes."""
_pick = st.integers(0, 30)
_session = st.integers(0, 1)
_queue = st.sampled_from(QUEUES)


def _requests(mix: str) -> st.SearchStrategy[Request]:
    keys: dict[str, list[str | None]] = {
        "keys": ["a", "a", "b"],
        "limits": [None, None, None, "a"],
    }
    columns = st.tuples(
        st.sampled_from(["one", "one", "two"]),
        st.sampled_from(["noop", "noop", "other"]),
        st.sampled_from([0, 0, 0, 5, -5]),
        st.sampled_from(keys.get(mix, [None, None, "a", "b"])),
        st.sampled_from(["resume", "retry", "fail"]),
        st.sampled_from([None, SHOP, SHOP, WEB]),
    )
    return columns.map(lambda values: Request(*values))


def _call(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


def _calls(mix: str) -> dict[str, list[st.SearchStrategy[Any]]]:
    # a job that waits for its retry keeps its key
    # and a group that stops keeps the members that have run
    more = {"keys": ("retrying",) * 5, "groups": UNFINISHED_ENDS}
    end = st.sampled_from((*ENDS, *more.get(mix, ())))
    requests = _requests(mix)
    submit = _call(
        "submit",
        batch=st.lists(requests, min_size=1, max_size=4),
        shape=st.sampled_from(["apart", "apart", "apart", "chain"]),
        parents=st.lists(_pick, max_size=1),
        condition=st.sampled_from(CONDITIONS),
        group=st.none(),
        session=_session,
    )
    family = _call(
        "submit",
        batch=st.lists(requests, min_size=1, max_size=3),
        shape=st.sampled_from(["apart", "apart", "chain", "fan", "join"]),
        parents=st.lists(_pick, max_size=2),
        condition=st.sampled_from(CONDITIONS),
        group=st.sampled_from([None, None, "checks", "checks", *GROUPS]),
        session=_session,
    )
    members = _call(
        "submit",
        batch=st.lists(requests, min_size=1, max_size=4),
        shape=st.sampled_from(["apart", "apart", "apart", "chain"]),
        parents=st.just([]),
        condition=st.sampled_from(["success", "any"]),
        group=st.sampled_from(["checks", "checks", *GROUPS]),
        session=_session,
    )
    children = st.lists(requests, min_size=1, max_size=3)
    rarely = st.sampled_from([False] * 3 + [True])
    fan_out = _call("fan_out", n=_pick, children=children, gather=st.booleans(), lost=rarely)
    claim = {"worker": _session, "free": st.integers(1, 3), "first": _session}
    return {
        "submit": [submit],
        "fan_out": [
            _call("start_fan_out", **claim, children=children),
            _call("retry_fan_out", worker=_session, first=_session, children=children),
            fan_out,
            fan_out,
            _call("gather", n=_pick, lost=rarely),
        ],
        "family": [family],
        "members": [members],
        "work": [
            _call("run", **claim, ends=st.lists(end, min_size=1, max_size=3)),
            _call("run", **claim, ends=st.lists(end, min_size=1, max_size=3)),
            _call("claim", **claim),
            _call("claim", **claim),
            _call("end", n=_pick, how=end),
            _call("end", n=_pick, how=end),
            _call("exchange", **claim),
            _call("answer", n=_pick, session=_session),
            _call("crash", worker=_session),
        ],
        "move": [
            _call(
                "move",
                n=_pick,
                place=st.sampled_from(["top", "bottom", "before", "before", "after"]),
                other=_pick,
                session=_session,
            ),
            _call("prioritize", n=_pick, priority=st.sampled_from([0, 5, -5]), session=_session),
        ],
        "time": [_call("pass_time", moment=st.sampled_from(MOMENTS), session=_session)],
        "burst": [_call("start_burst", **claim, session=_session)],
        "outrun": [_call("fail_beside_waiting", n=_pick, how=st.sampled_from(UNFINISHED_ENDS))],
        "limits": [_call("change_limits", settings=st.sampled_from(LIMITS))],
        "pause": [
            _call(
                "pause",
                queue=_queue,
                type=st.sampled_from([None, *TYPES]),
                session=_session,
            ),
            _call("resume", n=_pick, session=_session),
            _call("sweep", session=_session),
        ],
        "reserve": [
            _call("reserve", request=requests, session=_session),
            _call("reserve", request=requests, session=_session),
            _call("release", queue=_queue, session=_session),
        ],
        "control": [
            _call("cancel", n=_pick, tree=st.booleans(), session=_session),
            _call("cancel", n=_pick, tree=st.just(False), session=_session),
            _call("retry", n=_pick, session=_session),
            _call("retry", n=_pick, session=_session),
            _call("cancel_group", n=_pick, session=_session),
            _call("break_next_connection", cut=st.sampled_from(CUTS)),
        ],
    }


def _mixed(mix: str) -> st.SearchStrategy[Any]:
    """Return the calls of a mix, by their weights."""
    calls = _calls(mix)
    kinds = [kind for kind, weight in _MIXES[mix].items() for _ in range(weight)]
    return st.sampled_from(kinds).flatmap(lambda kind: st.sampled_from(calls[kind]).flatmap(_same))


def _same(call: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return call


CALLS: Final = {mix: _mixed(mix) for mix in _MIXES}
"""The calls of each mix: a name and arguments."""
BEGINNINGS: Final = st.sampled_from(
    [
        *[("queues", limits, None) for limits in LIMITS],
        *[("keys", limits, None) for limits in (LIMITS[0], LIMITS[0], LIMITS[0], *LIMITS[5:7])],
        *[("limits", limits, None) for limits in (*LIMITS[1:], *LIMITS[3:7])],
        *[("groups", limits, None) for limits in (LIMITS[0], LIMITS[0], *LIMITS[:5])],
        *[("workflows", limits, None) for limits in (LIMITS[0], LIMITS[0], *LIMITS[:5])],
        *[("fan_out", limits, None) for limits in (LIMITS[0], LIMITS[0], *LIMITS[:6])],
    ]
)
"""The mix of an example, its first limits and its first call: rates need many calls, keys few other
limits."""
SHORT_BEGINNINGS: Final = {
    "limits": st.tuples(
        st.just("limits"),
        st.sampled_from([LIMITS[4], LIMITS[8]]),
        st.one_of(_calls("limits")["burst"]),
    ),
    "groups": st.tuples(
        st.just("groups"),
        st.just(LIMITS[0]),
        _call("fail_beside_waiting", n=_pick, how=st.just("scheduled")),
    ),
    "fan_out": st.tuples(
        st.just("fan_out"), st.just(LIMITS[0]), st.one_of(_calls("fan_out")["fan_out"][:2])
    ),
    "any": BEGINNINGS,
}
"""Beginnings of short examples: the states that few calls hardly reach come first."""
