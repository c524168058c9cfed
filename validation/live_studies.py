"""Run studies with real kernels, live or in virtual time, keep the results, and write them into the studies' pages.

    python validation/live_studies.py                   runs each that has a [live] section; about an hour
    python validation/live_studies.py --engine kernel   in virtual time: each that has a [live.kernel] section
    python validation/live_studies.py fairness          only that
    python validation/live_studies.py --quick           the quick grids
    python validation/live_studies.py --from DIR NAME   keeps the JSON of `anabranch study NAME --engine live --out DIR`
    python validation/live_studies.py --from DIR --figure FIGURE NAME   also keeps a figure of the runs, point by point
    python validation/live_studies.py --simulator       runs the simulator only and updates its answers in the results
    python validation/live_studies.py --pages           runs nothing: writes the pages from the results
    python validation/live_studies.py --check           compares those instead; exit status 1 when one is out of date

``--kernel RELEASE`` chooses the kernel in virtual time. Without ``--engine``, runs are live, and the last three are of
both engines.

The result is ``studies/NAME/live.json`` or ``studies/NAME/kernel.json``, the command's JSON. Live
runs differ from each other, so the page must match that file and not another run. A study without a
result has no such part in its page. A result is also out of date if its study has no such section
any more, has other claims, or makes other runs: a hash covers their scenarios, settings and seeds.
The simulator's answers are out of date if a scenario resolves differently, for example after a
change of a TCP profile.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
from anabranch import Study, _engine
from anabranch.study.definition import Definition
from anabranch.study.live import LivePool, LiveStudyJson, section, verdict_json
from anabranch.study.results import Job, Pool

from comparison.pages import fill

ROOT = Path(__file__).resolve().parents[1]
ENGINES = {"live": "[live]", "kernel": "[live.kernel]"}
"""The engines, which are also the names of the result and of the page's part, and their sections of a study."""


def kept(name: str, engine: str) -> Path:
    """The file of a study's result."""
    return ROOT / "studies" / name / f"{engine}.json"


def page(name: str) -> Path:
    """The page that shows it."""
    return ROOT / "docs" / "studies" / f"{name}.md"


def part(name: str, engine: str) -> Definition | None:
    """The part of a study for an engine."""
    live = Study.load(ROOT / "studies" / name).definition.live
    return live.kernel if live is not None and engine == "kernel" else live


def existing_part(name: str, engine: str) -> Definition:
    """The part of a study for an engine.

    Raises:
        SystemExit: There is none.
    """
    definition = part(name, engine)
    if definition is None:
        raise SystemExit(f"{name} has no {ENGINES[engine]} section")
    return definition


def able(engine: str) -> list[str]:
    """The studies with a part for an engine."""
    names = sorted(path.parent.name for path in (ROOT / "studies").glob("*/study.toml"))
    return [name for name in names if part(name, engine) is not None]


def shown(engine: str) -> list[str]:
    """The studies with a result of an engine, or with a part for it in their page."""
    names = {path.parent.name for path in (ROOT / "studies").glob(f"*/{engine}.json")}
    pages = (ROOT / "docs" / "studies").glob("*.md")
    return sorted(names | {path.stem for path in pages if f"<!-- begin {engine} -->" in path.read_text("utf-8")})


def sampled(job: Job) -> list[float]:
    """The sampling interval of links and groups, if they are sampled."""
    return [] if job.samples_ms is None else [job.samples_ms]


def runs_of(name: str, mode: str, engine: str) -> str:
    """A hash of every run that the study makes with kernels: file, settings, seed and sampling interval."""
    definition = existing_part(name, engine)
    jobs = Study(definition)._everything(LivePool(definition), quick=mode == "quick")
    runs = sorted({(str(job.scenario), job.sets, job.seed, *sampled(job)) for job in jobs})
    # The study's other files are loaded too, but have no effect here.
    used = {job.scenario for job in jobs}
    texts = {str(path): text for path, text in sorted(definition.texts.items()) if path in used}
    return hashlib.sha256(json.dumps([runs, texts]).encode()).hexdigest()


def resolved(name: str, mode: str, engine: str) -> str:
    """A hash of the simulator's resolved scenarios: every switch of every stack."""
    definition = existing_part(name, engine)
    pool = Pool(definition)
    once = {(str(job.scenario), job.sets): job for job in Study(definition)._everything(pool, quick=mode == "quick")}
    answer = hashlib.sha256()
    for _, job in sorted(once.items()):
        text, file, sets, seed = pool._task(job)
        scenario = json.loads(_engine.resolve(text, file, sets, seed))["resolved_scenario"]
        scenario.pop("seed")
        answer.update(json.dumps(scenario, sort_keys=True).encode())
    return answer.hexdigest()


def simulated(name: str, engine: str) -> LiveStudyJson:
    """The result with the simulator's current answers."""
    document: LiveStudyJson = json.loads(kept(name, engine).read_text("utf-8"))
    definition = existing_part(name, engine)
    result = Study(definition)._judged(Pool(definition), quick=document["mode"] == "quick", progress=None)
    said = {claim["id"]: claim for claim in result.to_json()["claims"]}
    for claim in document["claims"]:
        claim["simulator"] = verdict_json(said[claim["id"]])
    made = {table.table.id: table for table in result.tables}
    for table in document["tables"]:
        if table["engine"] == "simulator":
            table["cells"] = made[table["id"]].rows()
    if "points" in document:
        head, *rows = document["points"]["rows"]
        answers = means(result.results.frame(), document["points"]["figure"])
        document["points"]["rows"] = [head, *([*row[:-2], answers[tuple(row[:-2])], row[-1]] for row in rows)]
    return document


def gaps(name: str, engine: str) -> list[str]:
    """Discrepancies between a study, its result and its page."""
    file = f"studies/{name}/{engine}.json"
    if not kept(name, engine).exists():
        return [f"docs/studies/{name}.md shows runs of the engine {engine}, and there is no {file}"]
    live = part(name, engine)
    if live is None:
        return [f"{file}: the study has no {ENGINES[engine]} section any more"]
    document: LiveStudyJson = json.loads(kept(name, engine).read_text("utf-8"))
    asked = {claim.id: (claim.claim, claim.published, claim.accept_if) for claim in live.claims}
    told = {claim["id"]: (claim["claim"], claim["published"], claim["accept_if"]) for claim in document["claims"]}
    found = [
        f"{file}: {what} is not the study's any more"
        for what, is_same in (
            ("its name", document["study"] == name),
            ("`title`", document["title"] == live.title),
            ("`about`", document["about"] == live.about),
            ("what it ran", document.get("runs") == runs_of(name, document["mode"], engine)),
            ("what the simulator ran", document.get("resolved") == resolved(name, document["mode"], engine)),
        )
        if not is_same
    ]
    changed = [claim for claim in sorted(asked.keys() | told.keys()) if asked.get(claim) != told.get(claim)]
    return found + [f"{file}: claim {claim} is not the study's any more" for claim in changed]


def run(name: str, options: argparse.Namespace) -> LiveStudyJson:
    """Run one study; return its JSON even if too many runs were tainted, which the JSON records."""
    command = [sys.executable, "-m", "anabranch", "study", f"studies/{name}", "--engine", options.engine, "--json"]
    command += ["--quick"] * options.quick + (["--kernel", options.kernel] if options.kernel else [])
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout:
        raise SystemExit(f"{name}: exit status {done.returncode}")
    document: LiveStudyJson = json.loads(done.stdout)
    return document


def points(directory: Path, figure: str, engine: str) -> list[list[str]]:
    """A figure at every point of the runs, as mean over seeds: heading, then rows; a dash for a missing result."""
    both = [pl.read_parquet(directory / f"{one}-runs.parquet") for one in ("simulator", engine)]
    if any(figure not in frame.columns for frame in both):
        raise SystemExit(f"the runs have no figure {figure}")
    order = both[0].columns.index("seed")
    axes = [name for name in both[0].columns[2:order] if both[0][name].drop_nulls().len()]
    keys = ["experiment", "variant", *axes]
    simulated, live = (
        {tuple(row[:-1]): row[-1] for row in frame.group_by(keys).agg(pl.col(figure).mean()).rows()} for frame in both
    )
    order_of = list(dict.fromkeys(both[0].select(keys).rows()))

    head = [*keys, "simulator", engine]
    return [head, *([cell(v) for v in (*key, simulated[key], live.get(key))] for key in order_of)]


def means(frame: pl.DataFrame, figure: str) -> dict[tuple[str, ...], str]:
    """The figure at every point, as mean over seeds; points and values as formatted cells."""
    axes = [name for name in frame.columns[2 : frame.columns.index("seed")] if frame[name].drop_nulls().len()]
    rows = frame.group_by(["experiment", "variant", *axes]).agg(pl.col(figure).mean()).rows()
    return {tuple(cell(v) for v in row[:-1]): cell(row[-1]) for row in rows}


def cell(value: object) -> str:
    """A value formatted for a table."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def keep(name: str, document: LiveStudyJson) -> None:
    """Write the result to its file."""
    if document["study"] != name:
        raise SystemExit(f"expected a result of {name}, and this is one of {document['study']}")
    engine = document["engine"]
    document["runs"] = runs_of(name, document["mode"], engine)
    document["resolved"] = resolved(name, document["mode"], engine)
    kept(name, engine).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def written(name: str, engine: str) -> str:
    """The up-to-date text of the page."""
    document: LiveStudyJson = json.loads(kept(name, engine).read_text("utf-8"))
    return fill(page(name).read_text("utf-8"), {engine: "\n".join(section(document))}, str(page(name)))


def compared(name: str, engine: str, *, check: bool) -> list[str]:
    """Write a result into its page, or with ``check`` only compare. Returns what is out of date."""
    out_of_date = gaps(name, engine)
    if not kept(name, engine).exists():
        return out_of_date
    text = written(name, engine)
    if text != page(name).read_text("utf-8"):
        if check:
            return [*out_of_date, f"docs/studies/{name}.md: python validation/live_studies.py --pages"]
        page(name).write_text(text, "utf-8")
    return out_of_date


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Studies with real kernels, and their pages.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--engine", choices=list(ENGINES))
    parser.add_argument("--kernel")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--from", dest="source", type=Path)
    parser.add_argument("--figure")
    parser.add_argument("--simulator", action="store_true")
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    engines = [options.engine] if options.engine else list(ENGINES)
    if options.source is not None:
        if len(options.names) != 1:
            parser.error("--from needs the name of one study")
        document = json.loads((options.source / "study.json").read_text("utf-8"))
        engines = [document["engine"]]
        if options.figure:
            rows = points(options.source, options.figure, document["engine"])
            document["points"] = {"figure": options.figure, "rows": rows}
        keep(options.names[0], document)
    elif options.simulator:
        for engine in engines:
            for name in set(shown(engine)).intersection(options.names or shown(engine)):
                keep(name, simulated(name, engine))
    elif not (options.pages or options.check):
        options.engine = options.engine or "live"
        engines = [options.engine]
        for name in options.names or able(options.engine):
            keep(name, run(name, options))
    out_of_date = []
    for engine in engines:
        for name in shown(engine):
            if not options.names or name in options.names:
                out_of_date += compared(name, engine, check=options.check)
    if out_of_date:
        sys.stderr.write("".join(f"out of date: {what}\n" for what in out_of_date))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
