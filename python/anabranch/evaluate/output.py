"""The output of ``anabranch evaluate --out``: verdicts as JSON, Markdown and HTML, figures, and scenarios."""

from __future__ import annotations

from pathlib import Path

from anabranch.evaluate import chart, judge
from anabranch.evaluate.evaluation import Evaluation, document
from anabranch.evaluate.page import html_report
from anabranch.evaluate.summary import markdown_report
from anabranch.files.output import follow, read_manifest, to_json, whole_directory, write_manifest
from anabranch.study.keep import carry_over
from anabranch.sweep.points import Points, shared
from anabranch.text.shown import plain

KIND = "evaluate"
FILE = "evaluation.json"
_SHOWN = (judge.BROKEN, judge.NOT_MET)


def points_in(directory: Path | None, store: Path | None = None) -> Points:
    """The store of finished runs: ``store``, else the directory of the results; it is created.

    Raises:
        UserError: ``store`` holds something else.
    """
    if store is not None:
        return shared(store, Path.cwd())
    if directory is None:
        return Points(None, Path.cwd())
    place = follow(directory)
    place.mkdir(parents=True, exist_ok=True)
    if read_manifest(place) is None:
        write_manifest(place, KIND, (), is_complete=False)
    return Points(place, Path.cwd())


def write_evaluation(result: Evaluation, directory: Path, command: str) -> None:
    """Write everything; the directory appears whole or not at all.

    Raises:
        UserError: The directory holds something else.
        RunFailedError: It cannot be written.
    """
    with whole_directory(directory, KIND) as aside:
        carry_over(directory, aside)
        (aside / FILE).write_bytes(to_json(document(result)))
        (aside / "SUMMARY.md").write_text(markdown_report(result, command), encoding="utf-8")
        (aside / "report.html").write_text(html_report(result, command), encoding="utf-8")
        (aside / "figures").mkdir()
        for check in result.checks:
            drawn = chart.svg(check, result.subject.name)
            if drawn is not None:
                (aside / "figures" / f"{check.check.id}.svg").write_text(drawn, encoding="utf-8")
        _write_scenarios(result, aside / "scenarios")


def _write_scenarios(result: Evaluation, folder: Path) -> None:
    """Write the scenario of each case that is not met, so that ``anabranch run`` shows it."""
    for check in result.checks:
        for number, one in enumerate(check.cases, 1):
            if one.judgement.verdict not in _SHOWN:
                continue
            folder.mkdir(exist_ok=True)
            path = folder / f"{check.check.id}-{number}.toml"
            lines = [f"{check.check.title}: {one.name}", f"Verdict: {one.judgement.verdict}: {one.judgement.why}"]
            if result.subject.controls:
                lines.append(f"To run it: anabranch run {path.name} --control {result.subject.source}")
            head = "".join(f"# {plain(line)}\n" for line in lines)
            path.write_text(f"{head}seed = {one.seed}\n{one.text}", encoding="utf-8")
