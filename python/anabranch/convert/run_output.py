"""Results of a run: read from the output of ``run --out`` or ``run --json``, or made by running a scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anabranch.convert import json_text
from anabranch.convert.content import Notes, Run, Source, Text
from anabranch.convert.json_text import Node
from anabranch.errors import UserError, nearest
from anabranch.files.files import MAX_RESULT_BYTES, read_bytes
from anabranch.files.stored import StoredKind
from anabranch.result.summary import AnySummary, LiveRunSummary
from anabranch.result.table_file import read_table

if TYPE_CHECKING:
    from anabranch.convert.formats import Format
    from anabranch.result.table import Table

_SUMMARY = "summary.json"
_SUMMARY_FILE = StoredKind(
    LiveRunSummary, "the summary of a run", "`anabranch run … --json` prints it", is_partial=True
)


def recognise(_name: str, head: bytes) -> bool:
    """Whether a file begins as a summary of a run does."""
    return head.lstrip().startswith(b"{") and b'"digest"' in head and b'"anabranch_version"' in head


def read(source: Source, _notes: Notes) -> Run:
    """The results in a directory, or in a summary, which has no tables.

    Raises:
        UserError: It holds no results of a run, or not all of them.
    """
    from anabranch.files.output import read_manifest

    directory = source.directory
    if source.content or str(directory) != source.name:
        return Run(_summary(source.name, source.content), _no_table(source.name))
    manifest = read_manifest(directory)
    if manifest is None or manifest.kind != "run":
        what = f"holds the results of `anabranch {manifest.kind}`" if manifest else "holds no results of a run"
        raise UserError(f"{source.name} {what}", hint="`anabranch run FILE --out DIR` writes them")
    name = directory / _SUMMARY
    summary = _summary(str(name), read_bytes(name, most=MAX_RESULT_BYTES))

    def table(name: str) -> Table:
        found = read_table(directory, name, "make the run again")
        if found is None:
            raise UserError(f"{directory} has no table of {name}", hint="run again, and record them")
        return found

    return Run(summary, table)


def _summary(name: str, content: bytes) -> LiveRunSummary:
    text = Text.decode(name, content)
    root = Node(text, json_text.parse(text))
    for key in ("resolved_scenario", "flows"):
        root.need(key).items()
    for key in ("scenario", "anabranch_version"):
        root.need(key).text()
    root.need("duration_s").number()
    return _SUMMARY_FILE.parse(name, content)


def _no_table(name: str) -> Callable[[str], Table]:
    def table(table: str) -> Table:
        hint = "`anabranch run FILE --out DIR` writes tables: give that directory"
        raise UserError(f"{name} is a summary without a table of {table}", hint=hint)

    return table


def original(summary: Any, directory: Path) -> str:
    """The path of the scenario at the time of the run, the base of the files that it names."""
    name = summary.get("scenario")
    return name if isinstance(name, str) and name.endswith(".toml") else str(directory / "scenario.toml")


def make(source: Source, found: Format, notes: Notes) -> Run:
    """The results of a scenario, from a simulation.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: The files that it names cannot be read.
    """
    import tempfile

    from anabranch.convert.scenario_file import open_scenario
    from anabranch.limits import SAMPLES_MS
    from anabranch.scenario import Scenario
    from anabranch.text import toml_text

    if found.name == "scenario":
        result = open_scenario(source).run(samples_ms=SAMPLES_MS, packets=True)
    else:
        description = found.read(source, notes)
        with tempfile.TemporaryDirectory() as directory:
            for name, content in description.files.items():
                (Path(directory) / name).write_bytes(content)
            text = toml_text.write_document(description.document)
            scenario = Scenario.from_text(text, file=str(Path(directory) / "scenario.toml"))
            result = scenario.run(samples_ms=SAMPLES_MS, packets=True)
    return Run(cast("AnySummary", result.summary), result.plain)


def of_flow(run: Run, flow: str | None) -> Run:
    """The same run with one flow only; with all flows if none is named.

    Raises:
        UserError: There is no such flow.
    """
    if flow is None:
        return run
    flows = run.summary["flows"]
    if flow not in flows:
        raise UserError(f'the run has no flow "{flow}"', hint=nearest(flow, flows))

    def table(name: str) -> Table:
        found = run.table(name)
        return found.where(found.is_in("flow", flow)) if "flow" in found else found

    return Run({**run.summary, "flows": {flow: flows[flow]}}, table)
