"""A few of the figures as bars, in SVG."""

PANELS = [
    ("write_64_per_s", "Writes/s at 64 connections (more is better)", 0),
    ("write_256_per_s", "Writes/s at 256 connections (more is better)", 0),
    ("linear_64_per_s", "Linear reads/s at 64 connections (more is better)", 0),
    ("lock_64_per_s", "Lock cycles/s at 64 connections (more is better)", 0),
    ("write_64_cpu_s", "Servers' CPU seconds for 10,000 writes (less is better)", 2),
    ("failover_ms", "kill -9 of the leader to the next write, ms (less is better)", 0),
    ("freeze_ms", "SIGSTOP of the leader to the next write, ms (less is better)", 0),
    ("rss_full_mb", "Memory of a node with all keys, MB (less is better)", 0),
]

WIDTH, LABEL, BAR, STEP, HEAD = 460, 90, 270, 22, 30
OWN, OTHER, EMPTY = "#c2571a", "#7d8ca3", "#9aa0a6"


def draw(figures, titles):
    """Two columns of panels; a bar for each system, a dash if it lacks the figure."""
    panels = [panel for panel in PANELS if any(figures.values(system, panel[0]) for system in titles)]
    height = HEAD + STEP * len(titles) + 14
    total = (WIDTH * 2, height * ((len(panels) + 1) // 2) + 10)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}" width="{total[0]}" height="{total[1]}"'
             ' font-family="sans-serif" font-size="12">', f'<rect width="{total[0]}" height="{total[1]}" fill="#ffffff"/>']
    for place, (name, heading, decimals) in enumerate(panels):
        left, top = WIDTH * (place % 2) + 10, height * (place // 2)
        parts.append(f'<text x="{left}" y="{top + 20}" font-weight="bold" fill="#222222">{escape(heading)}</text>')
        parts += bars(figures, titles, name, decimals, left, top + HEAD)
    return "\n".join([*parts, "</svg>"]) + "\n"


def bars(figures, titles, name, decimals, left, top):
    medians = {system: figures.median(system, name) for system in titles}
    greatest = max((value for system in titles for value in figures.values(system, name)), default=0) or 1
    for row, (system, title) in enumerate(titles.items()):
        y, median = top + STEP * row, medians[system]
        yield f'<text x="{left + LABEL - 8}" y="{y + 13}" text-anchor="end" fill="#222222">{escape(title)}</text>'
        if median is None:
            yield f'<text x="{left + LABEL}" y="{y + 13}" fill="{EMPTY}">–</text>'
            continue
        length = max(1, BAR * median / greatest)
        colour = OWN if system == "eldest" else OTHER
        yield f'<rect x="{left + LABEL}" y="{y}" width="{length:.1f}" height="{STEP - 6}" fill="{colour}"/>'
        values, end = figures.values(system, name), left + LABEL + length
        if len(values) > 1:
            from_, to = (left + LABEL + BAR * value / greatest for value in (min(values), max(values)))
            yield f'<line x1="{from_:.1f}" y1="{y + 8}" x2="{to:.1f}" y2="{y + 8}" stroke="#222222"/>'
            end = max(end, to)
        yield f'<text x="{end + 5:.1f}" y="{y + 13}" fill="#222222">{median:,.{decimals}f}</text>'


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")
