"""The curves of `scripts/bench-growth` as tables, and as a page with a picture."""

import math
import os

FIGURES = [
    ("per_s", "writes/s", 0), ("p50_ms", "p50 ms", 2), ("p99_ms", "p99 ms", 2), ("cpu_us", "CPU of all nodes, µs a write", 0),
    ("errors", "errors", 0), ("rss_mb", "memory of a node, MB", 0), ("restart_s", "restart to ready, s", 2),
]
DRAWN = [("per_s", "writes/s", "#c2571a"), ("p99_ms", "p99 ms", "#4a6fa5")]

WIDTH, HEIGHT, LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 460, 230, 55, 40, 330, 140


class Page:
    def __init__(self, run, axes, how):
        self.run, self.axes, self.how = run, axes, how

    def text(self):
        rounds = self.run.rounds
        parts = [
            "# Growth\n",
            "The curves show how the figures change with the data that the nodes hold and the clients that they serve: writes of 256 bytes to "
            "10,000 random keys at 64 connections, three nodes and the load generator on one machine, fsync on, except for what a curve varies. "
            f"Each point has a fresh cluster; medians of {rounds} round{'s' * (rounds > 1)} of {self.run.seconds} s.\n",
            "![Growth](growth.svg)\n",
        ]
        for curve, axis in self.axes.items():
            parts += [f"## By {axis}\n", "\n".join(self.table(curve, axis)) + "\n"]
        parts += ["## How it was measured\n", self.how + "\n", "```sh\nscripts/bench-growth --write\n```"]
        return "\n".join(parts)

    def table(self, curve, axis):
        points = self.run.points[curve]
        figures = [figure for figure in FIGURES if any(self.run.median(curve, point, figure[0]) is not None for point in points)]
        yield "| " + " | ".join([axis, *(title for _, title, _ in figures)]) + " |"
        yield "|" + "---:|" * (len(figures) + 1)
        for point in points:
            medians = [(self.run.median(curve, point, name), decimals) for name, _, decimals in figures]
            cells = ["–" if median is None else f"{median:,.{decimals}f}" for median, decimals in medians]
            yield "| " + " | ".join([f"{point:,}", *cells]) + " |"

    def write(self, folder):
        for name, text in (("growth.svg", self.picture()), ("growth.md", self.text() + "\n")):
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write(text)
            print(f"wrote {path}")

    def picture(self):
        rows = (len(self.axes) + 1) // 2
        size = (WIDTH * 2, HEIGHT * rows)
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}"'
                 ' font-family="sans-serif" font-size="12">', f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>']
        for place, (curve, axis) in enumerate(self.axes.items()):
            parts += self.panel(curve, axis, WIDTH * (place % 2), HEIGHT * (place // 2))
        return "\n".join([*parts, "</svg>"]) + "\n"

    def panel(self, curve, axis, left, top):
        """Points are at equal distances: most axes grow by factors."""
        points = self.run.points[curve]
        step = PLOT_WIDTH / max(1, len(points) - 1)
        bottom = top + TOP + PLOT_HEIGHT
        yield f'<text x="{left + 10}" y="{top + 20}" font-weight="bold" fill="#222222">By {axis}</text>'
        yield f'<line x1="{left + LEFT}" y1="{bottom}" x2="{left + LEFT + PLOT_WIDTH}" y2="{bottom}" stroke="#9aa0a6"/>'
        for at, point in enumerate(points):
            yield f'<text x="{left + LEFT + at * step:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#222222">{short(point)}</text>'
        for row, (figure, title, colour) in enumerate(DRAWN):
            values = [self.run.median(curve, point, figure) for point in points]
            greatest = max((value for value in values if value), default=0) or 1
            spots = [(left + LEFT + at * step, bottom - PLOT_HEIGHT * value / greatest) for at, value in enumerate(values) if value is not None]
            yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in spots) + '"/>'
            for x, y in spots:
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
            yield f'<text x="{left + LEFT + 110 * row}" y="{bottom + 34}" fill="{colour}">{title}, to {rounded(greatest)}</text>'


def short(number):
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)


def rounded(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.{max(0, 2 - int(math.log10(max(number, 0.1))))}f}"
