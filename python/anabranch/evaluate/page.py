"""The report of an evaluation as one self-contained page."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from anabranch.evaluate import chart, judge, words
from anabranch.evaluate.evaluation import OWN, CaseResult, CheckResult, Evaluation, ItemResult
from anabranch.evaluate.items import DOCUMENTS
from anabranch.evaluate.judge import shown
from anabranch.report.page import page, text

_HERE = Path(__file__).resolve().parent
_LEGEND = {
    judge.MET: "the interval of the difference is within what counts as equal, or better",
    judge.NOT_MET: "the interval of the difference is wholly on the wrong side",
    judge.INCONCLUSIVE: "the interval does not decide: more seeds would",
    judge.BROKEN: "a run failed, stalled or never ended",
    judge.NOT_EVALUATED: "no scenario shows it, for the reason given",
}


def html_report(result: Evaluation, command: str) -> str:
    """The page."""
    body = [
        f"<style>{(_HERE / 'evaluate.css').read_text(encoding='utf-8')}</style>",
        f"<h1>{text(words.title(result))}</h1>",
        f"<p class='soft'>{text(words.facts(result))}</p>",
        "<div class='tally'>"
        + "".join(
            f"<span>{_badge(verdict)} {result.counts[verdict]}</span>"
            for verdict in judge.VERDICTS
            if result.counts[verdict]
        )
        + "</div>",
        *(f"<p class='hint'>{text(remark)}</p>" for remark in result.remarks),
    ]
    for document, group in groupby(result.items, key=lambda one: one.item.document):
        body.append(f"<h2>{text(document)}: {text(DOCUMENTS[document])}</h2><ul class='items'>")
        body += [_item(one) for one in group]
        body.append("</ul>")
    body.append("<h2>Checks</h2>")
    body += [_check(one, result) for one in result.checks if one.cases]
    body.append("<h2>Verdicts</h2><ul class='hint'>")
    body += [f"<li>{_badge(verdict)} {text(told)}.</li>" for verdict, told in _LEGEND.items()]
    margin = f"A difference counts from {judge.MARGIN:.0%} of the reference on, or from the measure's floor. "
    body.append(
        f"</ul><p class='hint'>{text(margin)}The RFCs state no such number (RFC 9743 §5); this one is Anabranch's, "
        "fixed before the first run. The cases of a check share an error of 5 %.</p>"
    )
    body.append(f"<h2>To repeat it</h2><pre class='command'>{text(command)}</pre>")
    if result.digest:
        body.append(f"<p class='hint'>Digest of all runs: <code>{result.digest}</code></p>")
    return page(words.title(result), "\n".join(body))


def _badge(verdict: str) -> str:
    return f"<span class='badge {words.slug(verdict)}'>{text(verdict)}</span>"


def _item(one: ItemResult) -> str:
    if one.verdict == judge.MET:
        titles = [check.check.title if i == 0 else words.lower(check.check.title) for i, check in enumerate(one.checks)]
        links = "; ".join(map(_link, one.checks, titles))
        left_out = f" Left out: {text(one.item.why_not)}." if one.item.why_not else ""
        said = f"{links}.{left_out}"
    else:
        links = ", ".join(_link(check, check.check.id) for check in one.checks)
        said = f"{text(words.of_item(one))} {links}"
    return (
        f"<li id='item-{text(one.item.id)}'><span class='section'>§{text(one.item.section)}</span>"
        f"<span>{text(one.item.title)}</span>{_badge(one.verdict)}<span class='said'>{said}</span></li>"
    )


def _link(one: CheckResult, told: str) -> str:
    return f"<a href='#{one.check.id}'>{text(told)}</a>"


def _check(one: CheckResult, result: Evaluation) -> str:
    check = one.check
    out = [
        f"<section class='check' id='{check.id}'><h3>{text(check.title)} {_badge(one.verdict)}</h3>",
        f"<p class='rule'>{text(check.about)}</p>",
        f"<p class='rule'><b>{text(check.criterion)}</b> <span class='soft'>{text(check.source)}</span></p>",
    ]
    scale = chart.scale_of(one.cases)
    if scale is None:
        out += [f"<p class='rule'>{text(case.name)}: {text(case.judgement.why)}</p>" for case in one.cases]
        return "".join(out) + "</section>"
    measure, names = one.cases[0].case.measure, chart.names_of(one)
    keys = "".join(
        f"<span><i style='background: var(--m{i % len(chart.COLOURS)})'></i>"
        f"{text(result.subject.name if name == OWN else name)}</span>"
        for i, name in enumerate(names)
    )
    better = "less is better" if measure.is_less_better else "more is better"
    unit = f" ({measure.unit})" if measure.unit else ""
    out.append(f"<div class='legend'><span>{text(measure.name + unit)}, {better}</span>{keys}</div><div class='cases'>")
    out += [_row(case, scale, names) for case in one.cases]
    ticks = "".join(f"<span>{text(shown(value, measure.unit))}</span>" for value in scale.ticks())
    out.append(f"<div class='case'><b></b><div class='axis'>{ticks}</div></div></div></section>")
    return "".join(out)


def _row(one: CaseResult, scale: chart.Scale, names: list[str]) -> str:
    unit = one.case.measure.unit
    mean = shown(one.judgement.interval.mean, unit) if one.judgement.interval else "–"
    verdict = one.judgement.verdict
    return (
        f"<div class='case'><b>{text(one.name)}</b>{chart.strip(one, scale, names, unit)}"
        f"<span class='n'>{text(mean)}</span>"
        f"<span class='said {words.slug(verdict)}' title='{text(one.judgement.why)}'>{text(verdict)}</span></div>"
    )
