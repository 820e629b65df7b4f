"""Mutation testing of the claim path.

python -m tests.mutations --list              the mutants, and the tests that each runs
python -m tests.mutations                     runs them all; exit code 1 if any survives
python -m tests.mutations --only 'exchange:'  those whose names match a regular expression
python -m tests.mutations --share 0.2 --seed 7  a share of them, and those that must always run
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.mutations import targets
from tests.mutations.mutant import Mutant

MOST_EQUIVALENT: Final = 0.05
"""Maximum fraction of mutants that are equivalent."""
REPLY: Final = 64 << 20
"""Maximum bytes of a reply of a runner."""


@dataclass
class Verdict:
    """The outcome of a mutant."""

    mutant: Mutant
    outcome: str
    """`killed`, `survived` or `equivalent`."""
    by: str = ""
    """The test that failed, or the reason why it is equivalent."""
    seconds: float = 0.0
    error: str = ""


class Runner:
    """A process that runs mutants (`runner.py`)."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Runner:
        """Start it; its first line lists the tests."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.mutations.runner",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=REPLY,
        )
        return cls(process)

    async def read(self) -> dict[str, Any]:
        """Return the next line of the process."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the tests ended; see its output above")
        result: dict[str, Any] = json.loads(line)
        return result

    async def order(self, **order: Any) -> dict[str, Any]:
        """Run tests."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()
        return await self.read()

    async def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


@dataclass
class Coverage:
    """Which tests reach a unit, their seconds, and which test killed a mutant last."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    killers: dict[str, str] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
    """The tests of this run."""

    def add(self, result: dict[str, Any]) -> None:
        """Add a run without a mutant; raises an error if a test failed."""
        if result["failed"]:
            sys.exit(f"{result['failed']} fails without a mutant: {result.get('error')}")
        self.seconds |= result["tests"]
        for test, units in result["reached"].items():
            for unit in units:
                self.tests[unit].append(test)

    def save(self, path: Path) -> None:
        """Write it to a file."""
        saved = {"seconds": self.seconds, "tests": self.tests, "killers": self.killers}
        path.write_text(json.dumps(saved), "utf-8")

    @classmethod
    def load(cls, path: Path) -> Coverage:
        """Read it from a file."""
        saved = json.loads(path.read_text("utf-8"))
        return cls(saved["seconds"], defaultdict(list, saved["tests"]), saved["killers"])

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests of a mutant; a nested function has those of the enclosing function."""
        unit = mutant.unit
        while unit not in self.tests and "." in unit:
            unit = unit.rpartition(".")[0]
        reached = {*self.tests.get(unit, [])}
        if mutant.unit in targets.OBJECTS:
            reached |= {test for test in self.chosen if test.startswith(targets.RULE_TESTS)}
        return [
            test
            for test in self.seconds
            if test in reached & self.chosen and targets.is_test_of(mutant, test)
        ]


async def _cover(runners: Sequence[Runner], collected: list[str]) -> Coverage:
    """Run the tests without a mutant, each runner some files of them."""
    files: dict[str, list[str]] = defaultdict(list)
    for test in collected:
        files[test.partition("::")[0]].append(test)
    shares: list[list[str]] = [[] for _ in runners]
    for tests in sorted(files.values(), key=len, reverse=True):
        min(shares, key=len).extend(tests)
    coverage = Coverage()
    for result in await asyncio.gather(
        *(runner.order(tests=share) for runner, share in zip(runners, shares, strict=True) if share)
    ):
        coverage.add(result)
    return coverage


async def _saved_cover(
    runners: Sequence[Runner], collected: list[str], saved: Path | None
) -> Coverage:
    """Run without a mutant the tests that the file does not know, and add them to it."""
    coverage = Coverage.load(saved) if saved is not None and saved.exists() else Coverage()
    new = [test for test in collected if test not in coverage.seconds]
    if new:
        _note(f"{len(new)} tests run without a mutant, to see which code each reaches")
        found = await _cover(runners, new)
        coverage.seconds |= found.seconds
        for unit, tests in found.tests.items():
            coverage.tests[unit] += tests
    if saved is not None:
        coverage.save(saved)
    coverage.chosen = {*collected}
    return coverage


async def _judge(
    mutants: Sequence[Mutant], jobs: int, *, listing: bool, tests: str, saved: Path | None
) -> tuple[list[Verdict], Coverage]:
    """Run the mutants; return a verdict of each, in the same order."""
    reasons = targets.equivalent()
    runners = [await Runner.start() for _ in range(jobs)]
    try:
        for runner in runners:
            collected = (await runner.read())["collected"]
        kinds = {mutant.path: mutant for mutant in mutants}.values()
        collected = [
            test
            for test in collected
            if re.search(tests, test) and any(targets.is_test_of(m, test) for m in kinds)
        ]
        coverage = await _saved_cover(runners, collected, saved)
        verdicts: dict[str, Verdict] = {}
        waiting = [mutant for mutant in mutants if mutant.name not in reasons]
        if listing:
            return [], coverage
        kills: Counter[tuple[str, str]] = Counter()
        total = len(waiting)
        waiting.reverse()

        async def work(runner: Runner) -> None:
            while waiting:
                mutant = waiting.pop()
                tests = sorted(
                    coverage.of(mutant),
                    key=lambda test: (
                        test != coverage.killers.get(mutant.name),
                        -kills[mutant.unit, test],
                        coverage.seconds[test],
                    ),
                )
                verdict = Verdict(mutant, "survived")
                if tests:
                    limit = 60 + 5 * sum(coverage.seconds[test] for test in tests)
                    result = await runner.order(tests=tests, mutant=asdict(mutant), limit=limit)
                    verdict.seconds = result["seconds"]
                    if by := result["failed"]:
                        kills[mutant.unit, by] += 1
                        coverage.killers[mutant.name] = by
                        verdict = replace(
                            verdict, outcome="killed", by=by, error=result.get("error", "")
                        )
                verdicts[mutant.name] = verdict
                _progress(len(verdicts), total, verdict)

        await asyncio.gather(*(work(runner) for runner in runners))
        if saved is not None:
            coverage.save(saved)
        return [
            verdicts.get(mutant.name) or Verdict(mutant, "equivalent", reasons[mutant.name])
            for mutant in mutants
        ], coverage
    finally:
        for runner in runners:
            await runner.stop()


def _progress(done: int, total: int, verdict: Verdict) -> None:
    mutant = verdict.mutant
    by = f" by {verdict.by}" if verdict.by else ""
    _note(
        f"[{done}/{total}] {verdict.outcome:8} {mutant.path}:{mutant.line} {mutant.name}{by}"
        f" ({verdict.seconds:.1f} s)"
    )


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _print(text: str) -> None:
    print(text)  # noqa: T201


def _summarize(verdicts: Sequence[Verdict]) -> bool:
    """Print a table of the files and the survivors; return whether there is none."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for verdict in verdicts:
        outcomes[verdict.mutant.path][verdict.outcome] += 1
    _print(f"{'':50} {'mutants':>8} {'killed':>8} {'survived':>8} {'equivalent':>10}")
    total: Counter[str] = Counter()
    for path, counts in [*outcomes.items(), ("all", total)]:
        total += counts if path != "all" else Counter()
        row = [counts.total(), counts["killed"], counts["survived"], counts["equivalent"]]
        _print(f"{path:50} {row[0]:8} {row[1]:8} {row[2]:8} {row[3]:10}")
    for verdict in verdicts:
        if verdict.outcome == "survived":
            _print(f"survived: {verdict.mutant.path}:{verdict.mutant.line} {verdict.mutant.name}")
    return not total["survived"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the mutants and their tests")
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument(
        "--tests", default="", help="a regular expression of tests, to run no others"
    )
    parser.add_argument(
        "--share", type=float, default=1.0, help="the fraction of mutants to run (1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="chooses the share (0)")
    parser.add_argument(
        "--reach",
        type=Path,
        help="a file that keeps which tests reach and kill what, for later runs",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (2)")
    options = parser.parse_args(arguments)
    known = targets.mutants()
    if unknown := targets.equivalent().keys() - {mutant.name for mutant in known}:
        _print("equivalent.toml names unknown mutants: " + "; ".join(sorted(unknown)))
        return 1
    if missing := targets.without_mutants(known):
        _print("nothing is changed in: " + "; ".join(sorted(missing)))
        return 1
    if len(targets.equivalent()) > MOST_EQUIVALENT * len(known):
        _print(f"more than {MOST_EQUIVALENT:.0%} of the mutants are equivalent")
        return 1
    mutants = [mutant for mutant in known if re.search(options.only, mutant.name)]
    mutants = _share(mutants, options.share, options.seed)
    _note(f"{len(mutants)} of {len(known)} mutants")
    verdicts, coverage = asyncio.run(
        _judge(
            mutants,
            options.jobs,
            listing=options.list,
            tests=options.tests,
            saved=options.reach,
        )
    )
    if options.list:
        rows = [{"name": m.name, "path": m.path, "tests": coverage.of(m)} for m in mutants]
        _print(json.dumps(rows, indent=1) if options.json else "\n".join(map(_listed, rows)))
        return 0
    if options.json:
        _print(json.dumps([_record(verdict) for verdict in verdicts], indent=1))
        return int(any(verdict.outcome == "survived" for verdict in verdicts))
    return 0 if _summarize(verdicts) else 1


def _share(mutants: Sequence[Mutant], share: float, seed: int) -> list[Mutant]:
    """Return the required mutants, and a share of the others by a seed."""
    chooser = random.Random(seed)
    return [
        mutant
        for mutant in mutants
        if chooser.random() < share or targets.REQUIRED.search(mutant.name)
    ]


def _listed(row: dict[str, Any]) -> str:
    return "\n    ".join([f"{row['path']} {row['name']}", *row["tests"]])


def _record(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": verdict.mutant.name,
        "path": verdict.mutant.path,
        "line": verdict.mutant.line,
        "outcome": verdict.outcome,
        "by": verdict.by,
        "error": verdict.error,
        "seconds": round(verdict.seconds, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
