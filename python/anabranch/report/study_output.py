"""The output of ``anabranch study --out``: verdicts as JSON, Markdown and HTML, figures, and the runs as tables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.extras import WITHOUT_FIGURES, is_installed
from anabranch.files.output import to_json, whole_directory
from anabranch.report.claims import cards, control_badge, counts, prose
from anabranch.report.page import image, page, table, text
from anabranch.result.format import share
from anabranch.result.table import Table
from anabranch.result.table_file import csv_lines, write_table
from anabranch.statistics.bounds import CUT
from anabranch.study import correction, witness
from anabranch.study.keep import carry_over
from anabranch.text import shown

if TYPE_CHECKING:
    from anabranch.study import ClaimResult, StudyResult
    from anabranch.study.correction import CorrectionResult
    from anabranch.study.definition import Open


def write_study(result: StudyResult, directory: Path) -> None:
    """Write everything; the directory appears whole or not at all.

    Raises:
        UserError: The directory holds something else, or ``plot.py`` is wrong.
    """
    from anabranch.plot import study as study_figures
    from anabranch.plot.style import house_style, save

    with whole_directory(directory, "study") as aside:
        carry_over(directory, aside)
        figures = []
        if is_installed("matplotlib"):
            with house_style():
                for name, title, drawn in study_figures.figures(result.results):
                    save(drawn, aside / "figures" / name)
                    figures.append((name, title))
        (aside / "study.json").write_bytes(to_json(result.to_json()))
        write_table(aside, "runs", result.results.plain())
        for name in ("samples", "link_samples", "group_samples"):
            samples = result.results.plain_samples(name)
            if samples is not None:
                write_table(aside, name, samples)
        for made in result.tables:
            (aside / "tables").mkdir(exist_ok=True)
            names = [made.table.rows, "label", *(n for c in made.columns for n in c.names())]
            cells = Table.of({name: [record[name] for record in made.records] for name in names})
            (aside / "tables" / f"{made.table.id}.csv").write_bytes(b"".join(csv_lines(cells)))
        (aside / "report.md").write_text(markdown(result, figures), encoding="utf-8")
        (aside / "report.html").write_text(html_report(result, figures, aside / "figures"), encoding="utf-8")


def html_report(result: StudyResult, figures: Sequence[tuple[str, str]], directory: Path) -> str:
    """The report as one page with its figures inside."""
    definition = result.definition
    body = [
        f"<h1>{text(definition.title)}</h1>",
        *([f"<p class='soft'>{text(definition.source)}</p>"] if definition.source else []),
        f"<p class='soft'>{text(_facts(result))}</p>",
    ]
    if definition.about:
        body.append(f"<p>{prose(definition.about)}</p>")
    shown = {
        name: f"<figure id='figure-{text(name)}'>{image((directory / f'{name}.svg').read_bytes(), title)}"
        f"<figcaption>{text(title)}{_claims_of(result, name)}</figcaption></figure>"
        for name, title in figures
    }
    placed: set[str] = set()
    body.append(f"<h2>Claims</h2>{counts(result.claims)}" if result.claims else "<p class='soft'>no claims</p>")
    for title, claims in result.by_section:
        body.append(f"<h3>{text(title)}</h3>{_about(result, title)}" if title else "")
        body.append(cards(claims, shown, placed))
    body += [f"<p class='hint'>{text(remark)}</p>" for remark in (*legend(result), *result.notes)]
    for one in result.corrections:
        body += [
            f"<h2>Corrected on {text(one.correction.date)}: {text(one.correction.title)}</h2>",
            *(f"<p>{text(line)}</p>" for line in _quoted(one)),
        ]
        if one.claims:
            body.append(table(correction.HEADINGS, one.rows(), left=5))
    if result.tables:
        body.append("<h2>Tables</h2>")
    for made in result.tables:
        body.append(f"<h3>{text(made.table.title)}</h3>{table(made.head(), made.rows())}")
        if made.table.note:
            body.append(f"<p class='soft'>{text(made.table.note)}</p>")
    others = [html for name, html in shown.items() if name not in placed]
    if others:
        title = "Other figures" if placed else "Figures"
        body.append(f"<h2>{title}</h2><div class='figures'>{''.join(others)}</div>")
    if not is_installed("matplotlib"):
        body.append(f"<p class='hint'>{text(WITHOUT_FIGURES)}</p>")
    body.append("<h2>Setting</h2>" + _setting(result))
    checked = [c for c in result.claims if c.control is not None or c.claim.invariant]
    rows = (
        (text(c.claim.id), prose(_wrong(result, c)), control_badge(c) or "–",
         text(c.control.measured if c.control else "–"))
        for c in checked
    )  # fmt: skip
    if checked:
        body.append(
            "<h2>Controls</h2>"
            "<p class='soft'>Every check is also made on a system known to be wrong, and must reject it.</p>"
            + table(("claim", "wrong system", "the check", "measured there"), rows, left=4, raw=True)
        )
    body.append(f"<h2>To repeat it</h2><pre>{text(_command(result))}</pre>")
    return page(definition.title, "\n".join(body))


def markdown(result: StudyResult, figures: Sequence[tuple[str, str]]) -> str:
    """The report as Markdown, with its figures as files beside it."""
    definition = result.definition
    lines = [f"# {shown.markdown(definition.title)}", ""]
    lines += [*_prose(definition.source), ""] if definition.source else []
    lines += [_facts(result), "", *([] if result.claims else ["no claims", ""])]
    if definition.about:
        lines += [*_prose(definition.about), ""]
    for title, claims in result.by_section:
        lines += ["", f"## {shown.markdown(title)}", ""] if title else []
        lines += _markdown_table(
            ("", "claim", "published", "accept if", "measured", "verdict", "robustness", "jitter", "control"),
            (
                (c.claim.id, c.claim.claim, c.claim.published, c.claim.accept_if, c.plain.measured,
                 _Verdict(c.verdict, c.why), share(c.robustness, stale=c.stale),
                 share(c.jitter), c.control.word if c.control else "none")
                for c in claims
            ),
        )  # fmt: skip
    for remark in (*legend(result), *result.notes):
        lines += ["", *_prose(remark)]
    on_witnesses = [one.row(c.claim.id) for c in result.claims for one in c.on_witnesses]
    if on_witnesses:
        lines += ["", "## Witnesses", ""]
        for each in definition.witnesses.values():
            lines += [*_prose(witness.explained(each)), ""]
        lines += _markdown_table(witness.HEADINGS, on_witnesses)
    for one in result.corrections:
        lines += ["", f"## Corrected on {one.correction.date}: {shown.markdown(one.correction.title)}", ""]
        for line in _quoted(one):
            lines += [*_prose(line), ""]
        lines += _markdown_table(correction.HEADINGS, one.rows()) if one.claims else []
    for made in result.tables:
        lines += ["", f"## {shown.markdown(made.table.title)}", "", *_markdown_table(made.head(), made.rows())]
        lines += ["", *_prose(made.table.note)] if made.table.note else []
    if figures:
        lines += ["", "## Figures"]
        for name, title in figures:
            lines += ["", f"![{shown.markdown(title)}](figures/{name}.png)", "", shown.markdown(title)]
    lines += ["", "## Setting", ""]
    if definition.setting_why:
        lines += [*_prose(definition.setting_why), ""]
    rows = [(p, _plain(v)) for p, v in definition.setting.items()]
    if rows:
        lines += [*_markdown_table(("key", "value"), rows), ""]
    if definition.opens:
        lines += _markdown_table(
            ("open parameter", "chosen", "plausible", "why"),
            ((p.title, _plain(p.value), _range(p), p.why) for p in definition.opens),
        )
    lines += ["", "## To repeat it", "", "```", _command(result), "```", ""]
    return "\n".join(lines)


def _quoted(made: CorrectionResult) -> list[str]:
    """The quoted sentence of the source, its translation, and the reason for the correction."""
    corrected = made.correction
    translation = f"In English: {corrected.translation}" if corrected.translation else ""
    left = "" if made.claims else "The full grid shows the claims before and since."
    return [line for line in (corrected.sentence, translation, corrected.why, left) if line]


def _about(result: StudyResult, title: str) -> str:
    about = next(s.about for s in result.definition.sections.values() if s.title == title)
    return f"<p class='soft'>{prose(about)}</p>" if about else ""


def _facts(result: StudyResult) -> str:
    document = result.to_json()
    engine = "live" if document["engine"] == "live" else "simulated"
    return f"{result.mode} grid, {result.runs:,} runs, {engine}, anabranch {document['anabranch_version']}"


def _claims_of(result: StudyResult, figure: str) -> str:
    ids = [c.id for c in (r.claim for r in result.claims) if figure in c.figures]
    published = next((f.published for f in result.definition.figures if f.id == figure), "")
    parts = [f"published: {published}"] if published else []
    parts += [f"claims {', '.join(ids)}"] if ids else []
    return f" ({text('; '.join(parts))})" if parts else ""


def legend(result: StudyResult) -> list[str]:
    """The meaning of the columns of shares and controls, in one sentence each."""
    remarks = []
    if result.robustness:
        stale = ", computed before the last change (stale)" if result.robustness.stale else ""
        own = ", ".join(c.id for c in result.definition.claims if c.robustness)
        grid = f"on the quick grid, {own} on a separate grid" if own else "on the quick grid"
        remarks.append(
            f"Robustness: share of {result.robustness.points} Latin-hypercube points over the open parameters' ranges "
            f"at which the claim holds, {grid}{stale}."
        )
    elif result.definition.opens and result.claims:
        remarks.append("Robustness has not been computed: anabranch study … --robustness.")
    if result.definition.jitter:
        remarks.append(
            f"Start jitter: share of {result.definition.jitter.seeds} seeds of spread start times for which it holds."
        )
    if any(c.control is not None for c in result.claims):
        remarks.append("Control: the verdict of the check on a system known to be wrong, which it must not accept.")
    if any(made.is_cut for made in result.tables):
        remarks.append(f"{CUT}.")
    return remarks


def _setting(result: StudyResult) -> str:
    definition = result.definition
    parts = [f"<p>{prose(definition.setting_why)}</p>"] if definition.setting_why else []
    if definition.setting:
        parts.append(table(("key", "value"), ((p, _plain(v)) for p, v in definition.setting.items()), left=2))
    if definition.opens:
        rows = ((p.title, _plain(p.value), _range(p), p.why) for p in definition.opens)
        parts.append("<p></p>" + table(("left open by the source", "chosen", "plausible", "why"), rows, left=4))
    for path, content in definition.texts.items():
        parts.append(f"<details><summary>{text(path)}</summary><pre>{text(content)}</pre></details>")
    return "".join(parts)


def _range(parameter: Open) -> str:
    if parameter.choices:
        return ", ".join(_plain(c) for c in parameter.choices)
    return f"{_plain(parameter.low)}‥{_plain(parameter.high)}"


def _plain(value: Any) -> str:
    from anabranch.text.toml_text import write_value

    return value if isinstance(value, str) else write_value(value)


def _wrong(result: StudyResult, claim: ClaimResult) -> str:
    if claim.claim.control is None:
        return f"none: {claim.claim.invariant}"
    return result.definition.wrongs[claim.claim.control].title


def _command(result: StudyResult) -> str:
    quick = " --quick" if result.mode == "quick" else ""
    return f"anabranch study {shown.plain(shlex.quote(result.definition.name))}{quick} --out DIR"


def _markdown_table(headings: Sequence[str], rows: Any) -> list[str]:
    def cell(value: object) -> str:
        return value.markdown() if isinstance(value, _Verdict) else shown.markdown(str(value).replace("\n", " "))

    out = [f"| {' | '.join(map(cell, headings))} |", f"|{'---|' * len(headings)}"]
    out += [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return out


def _prose(text: str) -> list[str]:
    """Lines of text, escaped for Markdown."""
    return [shown.markdown(line) for line in text.splitlines()]


@dataclass(frozen=True)
class _Verdict:
    """A cell with a word in bold."""

    word: str
    why: str

    def markdown(self) -> str:
        why = f": {shown.markdown(self.why.replace(chr(10), ' '))}" if self.why else ""
        return f"**{shown.markdown(self.word)}**{why}"
