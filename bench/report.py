"""The page docs/performance.md: a table, charts, and how it was measured."""

from __future__ import annotations

import re

from bench import chart, growth
from bench.aims import Row, rows
from bench.running import Results
from bench.workshop import PEER_VERSION, ROOT

PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
SERVERS = {"ours": "ours", "ours-memory": "ours, no history", "peer": "peer", "peer-quiet": "peer quiet"}
_BEGIN, _END = "<!-- measured: {} -->", "<!-- end: {} -->"


def write(results: Results) -> str:
    """Renew the measured parts of the page; what people wrote around them stays. Gives the table."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    shown = table(results)
    body = [_conditions(results), "", shown, "", *_plots(results)]
    body += ["", _doors(results)]
    if results.form == "full":
        body += ["", growth.table(results)]
    replace_part("figures", "\n".join(body))
    return shown


def table(results: Results) -> str:
    lines = [
        "| work | " + " | ".join(SERVERS.values()) + " | to peer | to peer quiet | aim | |",
        "|---|" + "---:|" * len(SERVERS) + "---:|---:|---|---|",
    ]
    return "\n".join(lines + [_line(row, results) for row in rows() if row.case in results.values])


def _doors(results: Results) -> str:
    servers = {
        "ours": "`/v1/rpc`",
        "ours-plain": "the same, plain ASGI",
        "ours-acp": "`/acp`",
        "ours-as-peer": "`/v1/acp/{id}`",
        "peer": "peer's `/v1/acp/{id}`",
    }
    lines = [
        "Through each of the three transports, with history. `/acp` accepts a POST and answers with an event,",
        "the others in the body. Plain ASGI is `direct_http = false`, without the [shortcut](adr/0005-direct-http.md).",
        "",
        "| work | " + " | ".join(servers.values()) + " |",
        "|---|" + "---:|" * len(servers),
    ]
    for row in rows():
        found = [results.median(row.case, server, row.figure) for server in servers]
        if found[1] is not None and not row.title.startswith("… lost"):
            cells = ["" if value is None else _number(value, row.unit) for value in found]
            lines.append(f"| {row.title}, {row.unit} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _line(row: Row, results: Results) -> str:
    cells = []
    for server in SERVERS:
        value = results.median(row.case, server, row.figure)
        problem = results.problems.get(row.case, {}).get(server)
        cells.append(_number(value, row.unit) if value is not None else f"refused ({problem})" if problem else "")
    for other in ("peer", "peer-quiet"):
        ratio = results.ratio(row.case, "ours", other, row.figure)
        cells.append("" if ratio is None else f"{ratio:.2f}")
    aims = "; ".join(aim.words for aim in row.aims)
    met = [aim.is_met(results) for aim in row.aims]
    verdict = "" if not met or None in met else "met" if all(met) else "**missed**"
    unit = f", {row.unit}" if row.unit else ""
    return f"| {row.title}{unit} | " + " | ".join(cells) + f" | {aims} | {verdict} |"


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value * 100:.1f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _conditions(results: Results) -> str:
    machine, ceiling = results.machine, results.ceiling
    posts = ", ".join(f"{ceiling[f'post-{n}']:,.0f} with {n}" for n in (1, 16, 64))
    return (
        f"One run of the {results.form} form, {results.seconds:.0f} s, commit {machine['commit']}: {machine['cpu']}, "
        f"{machine['cores']} cores shared by server, agent and load generator, Linux {machine['kernel']}, "
        f"Python {machine['python']}, load average {machine['load_at_start']:.1f} before it began. Medians over the "
        f"rounds; a ratio is the median of the ratios within each round. The peer is version {PEER_VERSION}.\n\n"
        f"The load generators are not the limit: against a server in C that does nothing they reach {posts} clients "
        f"(requests/s), and read {ceiling['events']:,.0f} events/s from one stream."
    )


def _plots(results: Results) -> list[str]:
    made = [
        _plot(
            "round-trips",
            "POST round trips",
            "req/s",
            {f"{n} clients": (f"post-{n}", "rate") for n in (1, 16, 64)},
            results,
        ),
        _plot(
            "streams",
            "Events delivered",
            "events/s",
            {"one reader": ("flood", "rate"), "8 sessions": ("flood-8", "rate"), "replay": ("replay", "rate")},
            results,
        ),
        _plot(
            "lost",
            "Events lost",
            "share",
            {name: (case, "lost_share") for name, case in (("one reader", "flood"), ("8 sessions", "flood-8"),
             ("slow reader", "slow"), ("stalled reader", "stalled"), ("replay", "replay"))},
            results,
        ),
    ]  # fmt: skip
    return [line for line in made if line]


def _plot(name: str, title: str, unit: str, wanted: dict[str, tuple[str, str]], results: Results) -> str:
    groups = {
        label: {words: results.median(case, server, figure) for server, words in SERVERS.items()}
        for label, (case, figure) in wanted.items()
        if case in results.values
    }
    if not groups:
        return ""
    (PLOTS / f"{name}.svg").write_text(chart.bars(title, groups, unit=unit))
    return f"![{title}](performance/{name}.svg)"


def replace_part(name: str, text: str) -> None:
    """Renew what stands between the two marks of that name in the page."""
    page = PAGE.read_text()
    begin, end = _BEGIN.format(name), _END.format(name)
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page))
