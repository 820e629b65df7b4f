"""Import cycles between modules, type-only imports included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import grimp
import pytest

PACKAGES = ("draftsman", "draftsman_bots", "draftsman_soak", "draftsman_tui")
REMAINING = {
    "draftsman.handlers.sandbox": 2,
    "draftsman_tui.dashboard": 20,
}
"""Modules in the known cycle of each package; remove an entry once its cycle is gone."""


def import_cycles(imports: Mapping[str, Set[str]]) -> Iterator[set[str]]:
    """Yield each group of two or more modules that import each other, directly or not."""
    remaining = {module: set(imported) for module, imported in imports.items()}
    while leaves := {module for module, imported in remaining.items() if not imported}:
        remaining = {
            module: imported - leaves
            for module, imported in remaining.items()
            if module not in leaves
        }
    reachable = {module: _reachable(module, remaining) for module in remaining}
    seen: set[str] = set()
    for module in sorted(reachable):
        if module in seen or module not in reachable[module]:
            continue
        cycle = {other for other in reachable[module] if module in reachable[other]}
        seen |= cycle
        yield cycle


def _reachable(start: str, imports: Mapping[str, Set[str]]) -> set[str]:
    reached: set[str] = set()
    pending = [start]
    while pending:
        new = imports[pending.pop()] - reached
        reached |= new
        pending += new
    return reached


def _common_package(modules: Set[str]) -> str:
    first, *others = (module.split(".") for module in modules)
    shared = 0
    while all(parts[: shared + 1] == first[: shared + 1] for parts in others):
        shared += 1
    return ".".join(first[:shared])


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    cycles = list(import_cycles(imports))
    sizes = {_common_package(cycle): len(cycle) for cycle in cycles}
    assert sizes == REMAINING, "\n".join(", ".join(sorted(cycle)) for cycle in cycles)


@pytest.mark.parametrize(
    ("imports", "cycles"),
    [
        ({"a": set(), "b": {"a"}, "c": {"a", "b"}}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [{"a", "b"}]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e", "a"}, "e": {"d"}}, ["abc", "de"]),
    ],
    ids=["none", "two modules", "two cycles"],
)
def test_cycles_are_detected(imports: dict[str, set[str]], cycles: list[Set[str]]) -> None:
    assert list(import_cycles(imports)) == [set(cycle) for cycle in cycles]
