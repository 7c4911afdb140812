"""The results as rows: median and range over the rounds, and Eldest's figure divided by the peer's of the same round."""

import statistics

# The figure's name, its label, its unit, decimals, whether more is better.
ROWS = [
    ("Writes of 256 bytes", [
        *((f"write_{n}_{figure}", f"{n} connection{'s' * (n > 1)}: {what}", decimals, more)
          for n in (1, 64, 256)
          for figure, what, decimals, more in (("per_s", "writes/s", 0, True), ("p50_ms", "p50 ms", 2, False), ("p99_ms", "p99 ms", 2, False),
                                               ("errors", "errors", 0, None))),
        ("write_64_cpu_s", "64 connections: servers' CPU seconds for 10,000 writes", 2, False),
    ]),
    ("Reads", [
        *((f"{work}_{n}_{figure}", f"{work}, {n} connections: {what}", decimals, more)
          for work in ("linear", "local") for n in (64, 256)
          for figure, what, decimals, more in (("per_s", "reads/s", 0, True), ("p99_ms", "p99 ms", 2, False))),
    ]),
    ("Locks", [
        ("lock_64_per_s", "64 connections: cycles of acquire and release a second", 0, True),
        ("lock_64_p99_ms", "64 connections: a cycle, p99 ms", 2, False),
        ("handover_p50_ms", "from a release to the next grant, p50 ms", 2, False),
    ]),
    ("Leader lost, to the next acknowledged write", [
        ("failover_ms", "`kill -9`, ms", 0, False),
        ("failover_ms max", "`kill -9`, the longest of all, ms", 0, False),
        ("freeze_ms", "`SIGSTOP`, ms", 0, False),
        ("freeze_ms max", "`SIGSTOP`, the longest of all, ms", 0, False),
    ]),
    ("Cost of having it", [
        ("start_ms", "three nodes started with empty disks, to the first acknowledged write, ms", 0, False),
        ("rss_idle_mb", "memory of the largest node, idle, MB", 0, False),
        ("rss_full_mb", "the same with all keys, MB", 0, False),
        ("idle_cpu_percent", "CPU of the three nodes, idle, % of a core", 1, False),
    ]),
]


class Figures:
    """`found` has a map of systems to figures for each round; a figure is a list of values."""

    def __init__(self, found, systems):
        self.found, self.systems = found, systems

    def values(self, system, name):
        """One value for each round; if an event happens several times in a round, all values."""
        return [value for round_ in self.found for value in round_.get(system, {}).get(name.removesuffix(" max"), [])]

    def median(self, system, name):
        values = self.values(system, name)
        if not values:
            return None
        return max(values) if name.endswith(" max") else statistics.median(values)

    def ratio(self, system, name):
        """Eldest's figure divided by the peer's, in the same round; the median of the rounds."""
        ratios = []
        for round_ in self.found:
            both = [round_.get(one, {}).get(name.removesuffix(" max")) for one in ("eldest", system)]
            if all(both):
                own, other = (max(values) if name.endswith(" max") else statistics.median(values) for values in both)
                ratios += [own / other] if other else []
        return statistics.median(ratios) if ratios and system != "eldest" else None

    def cell(self, system, name, decimals):
        median = self.median(system, name)
        if median is None:
            return "–"
        values = self.values(system, name)
        text = f"{median:,.{decimals}f}"
        if len(values) > 1 and not name.endswith(" max"):
            text += f" ({min(values):,.{decimals}f}–{max(values):,.{decimals}f})"
        ratio = self.ratio(system, name)
        return text if ratio is None or name.endswith("errors") else f"{text} ×{short(ratio)}"

    def rows(self):
        """Title, and the rows for which at least one system has a figure."""
        for title, rows in ROWS:
            kept = [row for row in rows if any(self.values(system, row[0]) for system in self.systems)]
            if kept:
                yield title, kept

    def lost(self):
        """The rows in which another system is better by more than a tenth: label, system, ratio."""
        for _, rows in self.rows():
            for name, label, _, more in rows:
                for system in self.systems:
                    ratio = self.ratio(system, name)
                    if ratio is not None and more is not None and (ratio < 0.9 if more else ratio > 1.1):
                        yield name, label, system, ratio


def short(number):
    """Two significant digits."""
    return f"{number:.2f}" if number < 10 else f"{number:.0f}"
