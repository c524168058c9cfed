"""The path of a capture, its replay and advice, in the report of a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.diagnosis.document import Connection
from anabranch.diagnosis.simulated import Replay
from anabranch.fitted import words
from anabranch.fitted.advice import verdict
from anabranch.report.page import table, text

if TYPE_CHECKING:
    from anabranch.fitted.made import Made


def fitted_path(made: Made) -> str:
    """The model of the path, and the simulations with it."""
    connection = made.connection
    items = words.path_items(connection["path"], made.scenario.assumptions)
    scenario = text(made.scenario.text)
    return (
        f"<h3>{text(words.path_title(connection['path']))}</h3>"
        f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"
        f"{_replay(connection.get('replay'))}{_advice(connection)}"
        f"<details><summary>The path as a scenario</summary><pre>{scenario}</pre></details>"
    )


def _replay(found: Replay | None) -> str:
    if not found:
        return ""
    rows = [(title, *words.replay_cells(found[name])) for name, title in words.MEASURES.items()]
    heads = ("measure", "capture", "simulation", "95 % interval")
    return f"<h3>Replay, mean of {found['seeds']} runs</h3>{table(heads, rows)}"


def _advice(connection: Connection) -> str:
    found = connection["advice"]
    if not found:
        return ""
    heads = ("remedy", "helps", "goodput (Mbit/s)", "gain", "95 % interval of the gain", "mean RTT (ms)",
             "change of the others", "change")  # fmt: skip
    rows = [(row["title"], "yes" if row["helps"] else "", *words.advice_cells(row)) for row in found]
    live = [
        (row["title"], words.number(told["goodput_mbit_s"]), words.number(told["rtt_ms"]))
        for row in found
        for told in words.by_kernel(row)
    ]
    kernel = table(("with the kernel's TCP", "goodput (Mbit/s)", "mean RTT (ms)"), live) if live else ""
    headline = text(verdict(connection, found))
    return f"<h3>Advice</h3><p><strong>{headline}</strong></p>{table(heads, rows, words=(1, 7))}{kernel}"
