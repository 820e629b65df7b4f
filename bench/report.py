"""Medians, ratios of medians, and the tables of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

Figures = dict[str, float]
OURS = "draftsman"
COSTS = {
    "cpu_us": "client CPU us",
    "server_us": "server CPU us",
    "wal_bytes": "WAL B",
    "commits": "commits",
    "rss_mb": "RSS MB",
    "kept": "rate kept",
}
"""Costs of a job, except the last two. The client is the worker, or the process that submits."""


RATES = {"floor": "per s"}
"""Heading of a rate that is not of jobs only."""
LEGS = {"call_ms": "call ms", "claimed_ms": "claimed ms"}
"""Parts of the time of an answer, from its start: medians."""


class Key(NamedTuple):
    """Key of a series of figures."""

    measure: str
    queue: str
    past: bool = False
    """Whether the database had seeded jobs."""


@dataclass(slots=True)
class Results:
    """All rounds of all figures, and the reasons of missing figures."""

    rounds: dict[Key, list[Figures]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, key: Key, figures: Figures) -> None:
        """Add the figures of a round."""
        self.rounds.setdefault(key, []).append(figures)

    def median(self, key: Key, figure: str) -> float | None:
        """Return the median over the rounds, or None without rounds."""
        values = [figures[figure] for figures in self.rounds.get(key, ()) if figure in figures]
        return median(values) if values else None

    def ratio(self, above: Key, below: Key, figure: str) -> float | None:
        """Return the ratio of two medians, or None if a median is missing."""
        over = self.median(above, figure)
        under = self.median(below, figure)
        return over / under if over is not None and under else None

    def queues(self, measure: str) -> list[str]:
        """Return the queues that have figures of a measure, draftsman first."""
        return list(dict.fromkeys(key.queue for key in self.rounds if key.measure == measure))

    def measures(self) -> list[str]:
        """Return the measures, in order."""
        return list(dict.fromkeys(key.measure for key in self.rounds))

    def document(self) -> list[dict[str, object]]:
        """Return all results as JSON data."""
        return [
            {
                **key._asdict(),
                "median": {figure: self.median(key, figure) for figure in rounds[0]},
                "rounds": rounds,
            }
            for key, rounds in self.rounds.items()
        ]


DASHBOARD = {
    "start_ms": "process started to first paint, ms",
    "frame_ms": "process started to first output on the screen, ms",
    "paint_ms": "screen taken to first paint, ms",
    **{
        f"{key}_{part}_ms": f"{title} to paint, {part}, ms"
        for key, title in (
            ("down", "cursor down"),
            ("page", "page down"),
            ("view", "another table"),
            ("filter", "filter"),
        )
        for part in ("p50", "p99")
    },
    "first_frame_ratio": "process started to its frame / a bare Textual table",
    "first_rows_ratio": "process started to its rows / a bare Textual table",
    **{
        f"key_{part}_{unit}": f"cursor down to paint without changes, {part}, {text}"
        for part in ("p50", "p95")
        for unit, text in (("ms", "ms"), ("ratio", "/ a bare Textual table"))
    },
    "key_cpu_ms": "its CPU for that, ms",
    "key_cpu_ratio": "that / a bare Textual table",
    "busy_cpu": "its process, % of a core",
    "busy_server": "its sessions in the database, %",
    "idle_cpu": "its process when idle, %",
    "idle_server": "its sessions when idle, %",
    "rss_mib": "resident at the end, MiB",
    "grows_mib": "grows in a minute, MiB",
}
"""Figures of a dashboard, with a thousand jobs and with a history."""


VACUUM = {
    "rate": "completed while as many are submitted, jobs/s",
    "rate_kept": "that in the last quarter / in the first",
    "jobs": "jobs",
    "wal_bytes": "WAL, B a job",
    "server_us": "server CPU, us a job",
    "table_mb": "tables grow, MB in a million jobs",
    "index_mb": "indexes grow, MB in a million jobs",
    "claim_mb": "index of the claim at the end, MB",
    "claim_grows": "that at the end / after a quarter",
    "dead_percent": "dead rows of job_states at most, %",
    "dead_end_percent": "dead rows of job_states at the end, %",
    "vacuums": "runs of autovacuum",
}
"""Figures of a load of some minutes."""
HELD = {
    "held": "held jobs",
    "keys": "concurrency keys",
    "p50_ms": "a claim of ten jobs beside them, ms",
    "bare_ms": "the same in a queue without them, ms",
    "ratio": "ratio",
}
"""Figures of claims beside held jobs."""
SCHEDULES = {
    "schedules": "schedules, each fired once",
    "fired_s": "from due to the last occurrence, s",
    "done_s": "from due to the end of the last job, s",
    "cpu_us": "client CPU, us a job",
    "server_us": "server CPU, us a job",
    "wal_bytes": "WAL, B a job",
}
"""Figures of schedules that are due at the same minute."""
AGENTS = {
    "bare_ms": "a program without a sandbox, from its start to its output, ms",
    "off_ms": "the same by a worker, mode off, ms",
    "landlock_ms": "in landlock, ms",
    "bwrap_ms": "in bwrap, ms",
    "over_ms": "in bwrap, more than without, ms",
    "over_cpu_ms": "in bwrap, CPU of all processes, more than without, ms",
    "ports_over_ms": "with gateway and network proxy, more than that, ms",
    "direct_ms": "a call of a model, direct, ms",
    "call_ms": "by an agent through its gateway, recorded, ms",
    "call_over_ms": "more than direct, ms",
    "call_cpu_ms": "CPU of the worker, ms a call",
}
"""Figures of programs in the sandbox, and of calls through the gateway: medians."""
COMMANDS = {
    "python_ms": "python -c pass, ms",
    "help_ms": "draftsman --help, ms",
    "help_ratio": "that / python -c pass",
    "jobs_ms": "draftsman jobs, ms",
    "jobs_ratio": "that / python -c pass",
    "submit_cpu_ratio": "CPU of draftsman submit / of jobs",
    "show_cpu_ratio": "CPU of draftsman show / of jobs",
    "answer_cpu_ratio": "CPU of draftsman answer / of jobs",
}
"""Figures of commands, from the start of the process to its end: medians."""
HELPS = {
    "bare_cpu_ms": "CPU of draftsman --help, ms",
    "commands": "commands",
    "median_ratio": "CPU of the --help of a command / that, median of the commands",
    "largest_ratio": "largest of the commands",
}
"""Figures of the help of each command: medians."""
WORKERS = {
    f"{figure}_{count}": f"{title}, {count} worker{'s' * (count > 1)}"
    for figure, title in (
        ("rate", "jobs/s"),
        ("cpu_us", "client CPU, us a job"),
        ("server_us", "server CPU, us a job"),
        ("skipped_percent", "skipped settlements, %"),
    )
    for count in (1, 2, 4)
} | {"kept": "rate of several workers / of one, lowest"}
"""Figures of several workers that drain a queue together."""
LISTS = {
    "commands": (COMMANDS, "new database", ""),
    "helps": (HELPS, "new database", ""),
    "workers10": (WORKERS, "10 slots each", ""),
    "workers100": (WORKERS, "100 slots each", ""),
    "agents": (AGENTS, "new database", ""),
    "held": (HELD, "new database", ""),
    "schedules": (SCHEDULES, "new database", ""),
    "dashboard": (DASHBOARD, "1,000 jobs", "past / 1,000"),
    "vacuum": (VACUUM, "new database", "past / none"),
}
"""Measures of draftsman alone with a line for each figure."""


def tables(results: Results) -> str:
    """Render a table per measure; a ratio is draftsman's figure divided by the other's."""
    return "\n\n".join(
        _list(results, measure) if measure in LISTS else _table(results, measure)
        for measure in results.measures()
    )


def footer(missing: Mapping[str, str]) -> str:
    """List the missing figures, each with its reason."""
    lines = [f"- {what}: {why}" for what, why in missing.items()]
    return "\n".join([f"Could not be measured: {len(missing)}", *lines])


def _list(results: Results, measure: str) -> str:
    titles, without, ratio = LISTS[measure]
    few = Key(measure, OURS)
    many = Key(measure, OURS, True)
    rows = [
        (
            title,
            number(results.median(few, figure)),
            number(results.median(many, figure)),
            number(results.ratio(many, few, figure)),
        )
        for figure, title in titles.items()
    ]
    heads = (measure, without, "over a past", ratio)
    return grid(*_used(heads, rows))


def _table(results: Results, measure: str) -> str:
    ours = Key(measure, OURS)
    keys = [Key(measure, queue) for queue in results.queues(measure)]

    def measured(*names: str) -> list[str]:
        medians = {name: [results.median(key, name) for key in keys] for name in names}
        return [name for name in names if medians[name].count(None) < len(keys)]

    timed = not measured("rate")
    main = "p50_ms" if timed else "rate"
    costs = measured(*COSTS)
    shown = measured("p50_ms", "p99_ms", *LEGS)
    heads = (
        measure,
        *(() if timed else (RATES.get(measure, "jobs/s"),)),
        *(LEGS.get(name) or f"{name[:3]} ms" for name in shown),
        "draftsman /",
        *(COSTS[name] for name in costs),
        "answer / idle",
        "over a past",
        "past / none",
    )
    rows = []
    for queue in results.queues(measure):
        key = Key(measure, queue)
        past = Key(measure, queue, True)
        cells = [queue, *([] if timed else [number(results.median(key, "rate"))])]
        cells += [number(results.median(key, name)) for name in shown]
        cells.append("" if queue == OURS else number(results.ratio(ours, key, main)))
        cells += [number(results.median(key, name)) for name in costs]
        cells += [number(results.median(key, "pair"))]
        cells += [number(results.median(past, main)), number(results.ratio(past, key, main))]
        rows.append(cells)
    return grid(*_used(heads, rows))


def _used(
    heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Leave out the columns without a figure."""
    used = [column for column in zip(heads, *rows, strict=True) if any(column[1:])]
    first, *others = zip(*used, strict=True)
    return first, others


def grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a Markdown table that is also readable as text."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if first == 0 else cell.rjust(width)
            for first, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in lines
    )


def number(value: float | None) -> str:
    """Format a number with at least three digits, or an empty string."""
    if value is None:
        return ""
    if value < 0:
        return f"-{number(-value)}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4
    return f"{value:,.{digits}f}"
