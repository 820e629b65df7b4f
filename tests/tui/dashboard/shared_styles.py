"""Results that Textual computes again for each widget of each application, computed once.

Matching style sheets took a third of the time of the dashboard's tests. The rules of a node follow
from the rules that name it, and from the types, ids, classes and relevant pseudo-classes of the
path to it; nodes for which these are equal share them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import pytest
from textual import _callback
from textual.css.model import RuleSet
from textual.css.styles import RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.message import Message
from textual.message_pump import MessagePump

ORDERED: Final = {"first-of-type", "last-of-type", "first-child", "last-child", "empty"}
IMMEDIATE: Final = {"display", "overflow_x", "overflow_y"}
"""Styles that change a node when they are set; others do so when it is mounted."""
Names = tuple[type[DOMNode], frozenset[str], str | None]
"""Type, classes and id of a node."""
Part = tuple[object, str | None, frozenset[str], tuple[str, ...]]
"""Type, id, classes and relevant pseudo-classes of a node."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rules that name a node, and the pseudo-classes on which they depend."""

    rules: tuple[RuleSet, ...]
    pseudo_classes: tuple[str, ...]

    @classmethod
    @functools.cache
    def of(cls, rules: tuple[RuleSet, ...]) -> Candidates:
        """Return the same object for the same rules."""
        return cls(rules, tuple(sorted(set().union(*(rule.pseudo_classes for rule in rules)))))


@dataclass(eq=False)
class Match:
    """The value of each style of a node, and the stored values once these are set."""

    rules: dict[str, Any]
    stored: dict[str, Any] | None = None


PARSED: Final[dict[object, list[RuleSet]]] = {}
"""The rules of each style sheet, by its text and its variables."""
CANDIDATES: Final[dict[tuple[RuleSet, ...], dict[Names, Candidates]]] = {}
"""The candidates by names, for the rules of an application."""
MATCHED: Final[dict[tuple[Candidates, tuple[Part, ...]], Match]] = {}
"""The rules by candidates and path."""

parse = Stylesheet._parse_rules
apply = Stylesheet.apply
get_dispatch_methods = MessagePump._get_dispatch_methods
count_parameters = functools.cache(_callback._count_parameters)


def share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share results that depend on style sheets and classes only between applications."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", _parsed)
    monkeypatch.setattr(RuleSet, "__hash__", object.__hash__)  # it is id() in Python
    monkeypatch.setattr(Stylesheet, "apply", _apply)
    monkeypatch.setattr(Stylesheet, "_process_component_classes", _process_component_classes)
    monkeypatch.setattr(MessagePump, "_get_dispatch_methods", _dispatcher())
    monkeypatch.setattr(_callback, "_count_parameters", _count_parameters)


def _parsed(sheet: Stylesheet, css: str, *how: Any, **more: Any) -> list[RuleSet]:
    values = (*how, *more.items())
    key = (css, values, frozenset(sheet._variables.items()))
    if key not in PARSED:
        PARSED[key] = parse(sheet, css, *how, **more)
    return PARSED[key]


def _apply(
    sheet: Stylesheet, node: DOMNode, *, animate: bool = False, cache: object = None
) -> None:
    candidates = _candidates(sheet, (type(node), frozenset(node._classes), node._id))
    pseudo_classes = candidates.pseudo_classes
    node._has_hover_style = "hover" in pseudo_classes
    node._has_focus_within = "focus-within" in pseudo_classes
    node._has_order_style = not ORDERED.isdisjoint(pseudo_classes)
    node._has_odd_or_even = "odd" in pseudo_classes or "even" in pseudo_classes
    key = (candidates, _path(node, pseudo_classes))
    if key not in MATCHED:
        MATCHED[key] = Matcher(sheet, candidates).match(node)
    _set_styles(sheet, node, MATCHED[key], animate)
    sheet._process_component_classes(node)


def _process_component_classes(sheet: Stylesheet, node: DOMNode) -> None:
    """Keep the styles of the components for which the same rules apply."""
    old_styles = node._component_styles.copy()
    node._component_styles.clear()
    paths: dict[tuple[str, ...], tuple[Part, ...]] = {}
    refresh_node = False
    for component in sorted(node._get_component_classes()):
        classes = frozenset((component,))
        candidates = _candidates(sheet, (DOMNode, classes, None))
        pseudo_classes = candidates.pseudo_classes
        if pseudo_classes not in paths:
            paths[pseudo_classes] = _path(node, pseudo_classes)
        key = (candidates, (*paths[pseudo_classes], (DOMNode, None, classes, ())))
        styles = old_styles.get(component)
        if styles is None or key not in MATCHED or styles.base._rules != MATCHED[key].rules:
            virtual_node = DOMNode(classes=component)
            virtual_node._attach(node)
            if key not in MATCHED:
                MATCHED[key] = Matcher(sheet, candidates).match(virtual_node)
            _set_styles(sheet, virtual_node, MATCHED[key])
            refresh_node = refresh_node or styles != virtual_node.styles
            styles = virtual_node.styles
        node._component_styles[component] = styles
    if refresh_node:
        node.refresh()


class Matcher:
    """Finds the rules of a node as a style sheet does, and applies them to nothing."""

    _check_rule = staticmethod(Stylesheet._check_rule)

    def __init__(self, sheet: Stylesheet, candidates: Candidates) -> None:
        self.rules_map = sheet.rules_map
        self.rules = candidates.rules[::-1]
        self._matched: dict[str, Any] = {}

    def match(self, node: DOMNode) -> Match:
        apply(cast(Stylesheet, self), node)
        return Match(self._matched)

    def replace_rules(self, _node: DOMNode, rules: dict[str, Any], animate: bool) -> None:
        self._matched = rules

    def _process_component_classes(self, node: DOMNode) -> None:
        """Leave them to the caller."""


def _candidates(sheet: Stylesheet, names: Names) -> Candidates:
    """Return the rules that name a node, the last first."""
    rules_map = sheet.rules_map
    known: Any = getattr(sheet, "_known_candidates", None)
    if known is None or known[0] is not rules_map:
        known = (rules_map, CANDIDATES.setdefault(tuple(sheet.rules), {}))
        sheet._known_candidates = known  # type: ignore[attr-defined]
    by_names: dict[Names, Candidates] = known[1]
    if names not in by_names:
        kind, classes, id = names
        selectors = {"*", *(base.__name__ for base in kind._css_bases(kind))}
        selectors |= {f".{name}" for name in classes} | ({f"#{id}"} if id is not None else set())
        named = {rule for name in rules_map.keys() & selectors for rule in rules_map[name]}
        by_names[names] = Candidates.of(tuple(filter(named.__contains__, reversed(sheet.rules))))
    return by_names[names]


def _path(node: DOMNode, pseudo_classes: tuple[str, ...]) -> tuple[Part, ...]:
    """Return the selectable properties of a node and its ancestors."""
    return tuple(
        (
            type(item),
            item._id,
            frozenset(item._classes),
            tuple(filter(item.has_pseudo_class, pseudo_classes)),
        )
        for item in node.css_path_nodes
    )


def _set_styles(sheet: Stylesheet, node: DOMNode, match: Match, animate: bool = False) -> None:
    """Set styles that differ; at once if the node has none and is not mounted."""
    if not match.rules:
        return
    base = node.styles.base
    if base._rules == match.rules:
        if not animate:
            node.notify_style_update()
        return
    if base._rules or node._is_mounted or animate:
        sheet.replace_rules(node, cast(RulesMap, match.rules), animate=animate)
    elif match.stored is None:
        sheet.replace_rules(node, cast(RulesMap, match.rules))
        match.stored = {key: value for key, value in base._rules.items() if key not in IMMEDIATE}
    else:
        base.merge_rules(cast(RulesMap, match.stored))
        for key in IMMEDIATE & match.rules.keys():
            setattr(base, key, match.rules[key])
        node.notify_style_update()


def _dispatcher() -> Callable[[MessagePump, str, Message], Iterable[tuple[type, Any]]]:
    """Return a function that looks up the handlers of a message once for each class."""
    known: dict[object, list[tuple[type, Any]] | None] = {}

    def dispatch(pump: MessagePump, name: str, message: Message) -> Iterable[tuple[type, Any]]:
        kind = (type(pump), name, type(message))
        if kind not in known:
            blank = object.__new__(type(message))
            blank._no_default_action = False
            known[kind] = (
                None
                if _depends_on_sender(type(pump), type(message))
                else [
                    (cls, method.__func__)  # type: ignore[attr-defined]
                    for cls, method in get_dispatch_methods(pump, name, blank)
                ]
            )
        handlers = known[kind]
        if handlers is None:
            return get_dispatch_methods(pump, name, message)
        return _bound(handlers, pump, message)

    return dispatch


def _bound(
    handlers: list[tuple[type, Any]], pump: MessagePump, message: Message
) -> Iterator[tuple[type, Any]]:
    """Return the handlers up to the class that prevents those of its bases."""
    previous: type | None = None
    for cls, method in handlers:
        if message._no_default_action and cls is not previous:
            return
        previous = cls
        yield cls, method.__get__(pump, cls)


def _depends_on_sender(pump: type[MessagePump], message: type[Message]) -> bool:
    """Return whether a handler is for the messages of some widgets only."""
    return any(
        selectors
        for cls in pump.__mro__
        for message_class in message.__mro__
        for _, selectors in (vars(cls).get("_decorated_handlers") or {}).get(message_class, ())
    )


def _count_parameters(func: Callable[..., Any]) -> int:
    if inspect.ismethod(func):
        return count_parameters(func.__func__) - 1
    return count_parameters(func)
