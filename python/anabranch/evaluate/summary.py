"""The report of an evaluation as Markdown."""

from __future__ import annotations

from itertools import groupby

from anabranch.evaluate import judge, words
from anabranch.evaluate.evaluation import CheckResult, Evaluation
from anabranch.evaluate.items import DOCUMENTS
from anabranch.text.shown import markdown


def markdown_report(result: Evaluation, command: str) -> str:
    """The summary; the figures are in the directory ``figures`` beside it."""
    out = [
        f"# {markdown(words.title(result))}",
        "",
        f"{markdown(words.facts(result))}.",
        "",
        f"**{words.tally(result)}.** A verdict is that of the worst check of an item.",
        "",
        *(line for remark in result.remarks for line in (markdown(remark), "")),
    ]
    for document, group in groupby(result.items, key=lambda one: one.item.document):
        out += [
            f"## {document}: {DOCUMENTS[document]}",
            "",
            "| § | item | verdict | reason |",
            "| --- | --- | --- | --- |",
        ]
        for one in group:
            cells = (one.item.section, one.item.title, f"**{one.verdict}**", words.of_item(one))
            out.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
        out.append("")
    wrong = [one for one in result.checks if one.verdict in (judge.BROKEN, judge.NOT_MET)]
    if wrong:
        out += ["## Checks that are not met", ""]
        for check in wrong:
            out += _section(check)
    out += ["## To repeat it", "", "```", command, "```", ""]
    if result.digest:
        out += [f"Digest of all runs: `{result.digest}`", ""]
    return "\n".join(out)


def _section(one: CheckResult) -> list[str]:
    out = [f"### {markdown(one.check.title)}", "", f"{markdown(one.check.about)} {markdown(one.check.criterion)}", ""]
    out += [f"Source: {markdown(one.check.source)}", ""]
    found = [case for case in one.cases if case.judgement.verdict in (judge.BROKEN, judge.NOT_MET)]
    out += [f"- {markdown(case.name)}: **{case.judgement.verdict}**, {markdown(words.of_case(case))}" for case in found]
    if any(case.judgement.interval for case in one.cases):
        out += ["", f"![{markdown(one.check.title)}](figures/{one.check.id}.svg)"]
    return [*out, ""]


def _cell(text: str) -> str:
    return markdown(text).replace("|", "\\|") if not text.startswith("**") else text
