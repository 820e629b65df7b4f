"""Import cycles between modules, type-only imports included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import grimp

PACKAGES = ("draftsman", "draftsman_agents", "draftsman_bots", "draftsman_soak", "draftsman_tui")


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


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    cycles = list(import_cycles(imports))
    assert cycles == [], "\n".join(", ".join(sorted(cycle)) for cycle in cycles)
