"""Inputs of ``anabranch compare``: results of runs and sweeps, and scenarios, which are run first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.compare.difference import Sample
from anabranch.errors import UserError, nearest
from anabranch.files.files import read_head
from anabranch.files.output import MANIFEST, read_manifest
from anabranch.files.stored import StoredKind
from anabranch.keys.grid import MAX_POINTS
from anabranch.limits import MAX_SEED
from anabranch.result.measures import columns_of, copies_of
from anabranch.result.summary import LiveRunSummary
from anabranch.sweep.design import Design
from anabranch.sweep.file import SWEEP_FILE
from anabranch.sweep.maker import FailedRunError, Jobs, Maker, Order
from anabranch.sweep.points import Keys, Points, shared
from anabranch.sweep.sweep import Place, Point, SweepResult, SweptScenario, engine_at, runs_table
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.result.table import Table
    from anabranch.scenario import Scenario

SUMMARY = "summary.json"

MOST_OF_A_NAME = 24
"""Characters of an input's name in a table."""

_EXPECTED = "a directory of `run --out` or `sweep --out`, a summary (JSON) or a scenario (TOML) was expected"


@dataclass(frozen=True)
class InputRun:
    """Data of runs only: the course of the flows over time."""

    samples: Table | None
    """The table ``samples``; ``None`` if it was not recorded."""
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Input:
    """One argument: a run or a sweep.

    Attributes:
        name: The heading of its column.
        path: The argument.
        kind: ``"run"`` or ``"sweep"``.
        result: The runs; a single one if it is a run.
        run: Data of runs only.
    """

    name: str
    path: Path
    kind: str
    result: SweepResult
    run: InputRun | None = None

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self.result.scenario.title

    @property
    def engine(self) -> str:
        """``"sim"``, ``"live"`` or ``"kernel"``."""
        return str(self.run.summary.get("engine", "sim")) if self.run else self.result.scenario.engine

    @property
    def is_tainted(self) -> bool:
        """Whether it is a live run whose figures are invalid."""
        return self.run is not None and bool(self.run.summary.get("tainted"))

    @property
    def measured_s(self) -> float | None:
        """Duration of the run; ``None`` if it is not recorded."""
        value = self.run.summary.get("duration_s") if self.run else None
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def seeds(self) -> list[int]:
        """The seeds of its runs."""
        return [int(seed) for seed in self.result.plain.unique("seed")]

    @property
    def seeds_text(self) -> str:
        """The seeds, abbreviated."""
        seeds = self.seeds
        if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
            return f"{seeds[0]}‥{seeds[-1]}"
        return ", ".join(map(str, seeds[:4])) + (", …" if len(seeds) > 4 else "")

    @property
    def flows(self) -> list[str]:
        """The names of its flows; for a flow with several copies, the names of the copies."""
        columns = columns_of(self.result.figures())
        flows = dict.fromkeys(c.element for c in columns if c.measure.section == "flow")
        means = copies_of(columns)
        return [flow for flow in flows if flow not in means]

    def points(self, axes: Sequence[str]) -> list[tuple[Any, ...]]:
        """The points of its grid, with the axes in this order."""
        if not axes:
            return [()]
        return list(dict.fromkeys(self.result.plain.select(*axes)))

    def samples_of(self, figure: str, axes: Sequence[str]) -> dict[tuple[Any, ...], Sample]:
        """A figure at every point; empty if it does not exist."""
        runs = self.result.plain
        if figure not in runs:
            return {}
        found: dict[tuple[Any, ...], list[tuple[int, str | None, float | None]]] = {}
        for row in runs.select(*axes, "seed", "digest", figure):
            found.setdefault(row[:-3], []).append(row[-3:])
        return {point: Sample(tuple(runs)) for point, runs in found.items()}

    def to_json(self) -> dict[str, object]:
        """Part of the document of ``compare --json``."""
        return {
            "name": self.name,
            "path": str(self.path),
            "kind": self.kind,
            "scenario": self.title,
            "engine": self.engine,
            "seeds": self.seeds,
            "runs": self.result.plain.height,
        }


@dataclass(frozen=True)
class _Place:
    """Target of an argument: ``kind`` is ``"run"``, ``"sweep"``, ``"summary"`` or ``"scenario"``."""

    given: Path
    kind: str
    file: Path

    def is_sweep(self, repeat: int | None) -> bool:
        """Whether it has several runs, as a scenario has with ``repeat``."""
        return self.kind == "sweep" or (self.kind == "scenario" and repeat is not None)


def read_inputs(
    paths: Sequence[str | Path],
    *,
    seed: int | None = None,
    repeat: int | None = None,
    samples_ms: float | None = None,
    untrusted: bool = False,
    store: Path | None = None,
    engine: str = "sim",
    kernel: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Input]:
    """Read every argument, and run the scenarios among them.

    Args:
        paths: Directories of ``run --out`` and ``sweep --out``, summaries and scenario files.
        seed: For scenarios; by default the seed of the first argument.
        repeat: Number of runs of each scenario, with consecutive seeds from ``seed``; compared like sweeps.
        samples_ms: Interval of samples of the scenarios' flows, in milliseconds.
        untrusted: The scenarios' authors are not trusted.
        store: With ``repeat``, a directory of finished runs that sweeps, studies and comparisons share.
        engine: Of scenarios: ``"sim"``, or ``"kernel"`` for Linux kernels in virtual time.
        kernel: The kernel, as in :meth:`Scenario.run_kernel <anabranch.scenario.Scenario.run_kernel>`.
        progress: Called with the share of the scenarios that has been run (0‥1).

    Raises:
        ScenarioError: A scenario is wrong.
        UserError: An argument is nothing that can be compared, or they do not match.
    """
    places = [_place(Path(path)) for path in paths]
    _check_together(places, repeat)
    names = _names([place.given for place in places])
    is_kernel = engine == "kernel"
    scenarios = {
        place: _scenario(place, is_kernel, kernel, untrusted=untrusted) for place in places if place.kind == "scenario"
    }
    if store is not None and repeat is None:
        raise UserError(
            f"{argument('store')} keeps the runs of {argument('repeat', 'N')}", hint="give both, or neither"
        )
    given = (("seed", seed), ("repeat", repeat), ("engine", engine if is_kernel else None))
    for name, value in given:
        if value is not None and not scenarios:
            raise UserError(f"{argument(name, value)} is for scenarios, and none is given", hint="leave it out")
    read = {place: _read(place, name) for place, name in zip(places, names, strict=True) if place not in scenarios}
    if scenarios and seed is None:
        first = places[0]
        seed = int(scenarios[first].resolve(live=is_kernel)["seed"]) if first in scenarios else read[first].seeds[0]
    _check_seeds(seed, repeat)
    inputs, done = [], 0
    for place, name in zip(places, names, strict=True):
        if place in read:
            inputs.append(read[place])
            continue

        def report(share: float, done: int = done) -> None:
            if progress:
                progress((done + share) / len(scenarios))

        if repeat is not None and seed is not None:
            result = _repeated(scenarios[place], range(seed, seed + repeat), report, store, engine, kernel)
            inputs.append(Input(name, place.given, "sweep", result))
        else:
            one = scenarios[place]
            made = (
                one.run_kernel(seed=seed, kernel=kernel, samples_ms=samples_ms, progress=report)
                if is_kernel
                else one.run(seed=seed, samples_ms=samples_ms, progress=report)
            )
            samples = made.plain("samples") if samples_ms is not None else None
            inputs.append(_run(name, place.given, made.summary, samples))
        done += 1
    return inputs


def _check_seeds(seed: int | None, repeat: int | None) -> None:
    if repeat is None:
        return
    if not 1 <= repeat <= MAX_POINTS:
        raise UserError(f"{argument('repeat', repeat)}: a whole number from 1 to {MAX_POINTS:,} was expected")
    if seed is not None and seed + repeat - 1 > MAX_SEED:
        raise UserError(f"{repeat} seeds from {seed} on: seeds up to {MAX_SEED} were expected")


def _repeated(
    scenario: Scenario,
    seeds: range,
    report: Callable[[float], None],
    store: Path | None,
    engine: str,
    kernel: str | None,
) -> SweepResult:
    """One run for each seed; the grid of ``[sweep]`` is not run."""
    points = Design([], seeds.start, len(seeds))
    jobs = Jobs(scenario.text, scenario.file, scenario.sets, [], points)
    keys = Keys(scenario.text, digest=True, untrusted=scenario.untrusted)
    folder = Path(scenario.file).parent
    kept = Points(None, folder) if store is None else shared(store, folder)
    maker = Maker(jobs, keys, kept, Order(True, scenario.untrusted, []))
    place = engine_at(Place(engine=engine, kernel=kernel), untrusted=scenario.untrusted)
    try:
        figures = maker.make(place, lambda done, total: report(done / total))
    except FailedRunError as failed:
        raise failed.error from None
    finally:
        place.close()
        kept.close()
    resolved = scenario.resolve(live=engine == "kernel")
    swept = SweptScenario(
        resolved.get("title", ""), scenario.sets, resolved.get("resolved_scenario", {}), engine=engine
    )
    return SweepResult([], figures.table([], points), swept)


def _check_together(places: Sequence[_Place], repeat: int | None) -> None:
    """Refuse inputs that cannot be compared.

    Raises:
        UserError: There is one input, the same input twice, or a run beside a sweep.
    """
    if len(places) < 2:
        raise UserError("one input has nothing to be compared with", hint="anabranch compare A B")
    seen: dict[Path, Path] = {}
    for place in places:
        where = place.file.resolve()
        if where in seen:
            raise UserError(f"{seen[where]} and {place.given} are the same", hint="give each input once")
        seen[where] = place.given
    first = places[0]
    for other in places[1:]:
        if other.is_sweep(repeat) != first.is_sweep(repeat):
            sweep, run = (other, first) if other.is_sweep(repeat) else (first, other)
            if sweep.kind == "scenario":
                raise UserError(
                    f"{argument('repeat', repeat)} makes a sweep of {sweep.given}, and {run.given} is a run",
                    hint="leave it out, or give scenarios and sweeps",
                )
            what = "a scenario, which is one run" if run.kind == "scenario" else "a run"
            raise UserError(
                f"{sweep.given} is a sweep and {run.given} is {what}; runs are compared with runs, sweeps with sweeps",
                hint=f"{argument('repeat', 'N')} runs a scenario with N seeds, as a sweep of the seed alone",
            )


def _place(given: Path) -> _Place:
    """The kind of an argument.

    Raises:
        UserError: It is nothing that can be compared.
    """
    if given.is_dir():
        return _directory(given)
    if not given.exists():
        names = [p.name for p in given.parent.iterdir()] if given.parent.is_dir() else []
        hint = nearest(given.name, names)
        raise UserError(
            f"{given}: no such file or directory; {_EXPECTED}", hint=hint if hint.startswith("did you") else None
        )
    if given.name == SWEEP_FILE:
        return _Place(given, "sweep", given)
    head = read_head(given, 4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if given.suffix == ".json" or head.startswith(b"{"):
        return _Place(given, "summary", given)
    return _Place(given, "scenario", given)


def _directory(given: Path) -> _Place:
    manifest = read_manifest(given) if (given / MANIFEST).is_file() else None
    if manifest is not None and not manifest.is_complete:
        raise UserError(f"{given} is not complete: writing it was cut short", hint="make it again")
    if manifest is not None and manifest.kind == "run":
        return _Place(given, "run", given / SUMMARY)
    if manifest is not None and manifest.kind == "sweep":
        return _Place(given, "sweep", given / SWEEP_FILE)
    if manifest is not None:
        raise UserError(f"{given} has the results of `anabranch {manifest.kind}`; {_EXPECTED}")
    raise UserError(f"{given} is a directory that anabranch did not write; {_EXPECTED}", hint=_inside(given))


def _inside(directory: Path) -> str | None:
    """The directories of results in another directory."""
    found = sorted(path.parent.name for path in directory.glob(f"*/{MANIFEST}"))
    return f"it has the results {', '.join(found[:6])}{', …' if len(found) > 6 else ''}" if found else None


def _scenario(place: _Place, is_kernel: bool, kernel: str | None, *, untrusted: bool) -> Scenario:
    from anabranch.scenario import Scenario

    scenario = Scenario.from_file(place.file, untrusted=untrusted)
    if is_kernel:
        from anabranch.kernel.engine import check, image_of

        check(scenario)
        image_of(scenario, kernel)
    else:
        scenario.resolve()
    return scenario


def _read(place: _Place, name: str) -> Input:
    if place.kind == "sweep":
        return Input(name, place.given, "sweep", SweepResult.read(place.file.parent))
    summary = read_summary(place.file)
    return _run(name, place.given, summary, _samples(place.file))


def read_summary(path: Path) -> LiveRunSummary:
    """The summary of a run, as ``run --json`` prints it.

    Raises:
        UserError: The file is something else.
    """
    return _SUMMARY.read(path)


def _foreign(content: Any) -> str:
    """The reason why a document is not the summary of a run; empty if it is one."""
    if not isinstance(content, dict):
        return "is JSON, but not a table"
    for key, what in (
        ("points", "a sweep, which has means only (its directory, `sweep --out DIR`, has the runs)"),
        ("study", "a study"),
        ("measures", "a comparison or a sweep"),
        ("connections", "a capture"),
    ):
        if key in content and "flows" not in content:
            return f"is the JSON of {what}"
    if content.get("format") != 1 and "flows" in content:
        return f"has format {content.get('format')}, and this version reads format 1"
    for key in ("flows", "links"):
        if not _is_table_of_tables(content.get(key)):
            return f'is JSON, but has no table "{key}"'
    seed = content.get("seed")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        return f'is JSON, but has no "seed" from 0 to {MAX_SEED}'
    if not isinstance(content.get("digest"), (str, type(None))):
        return 'is JSON, but its "digest" is no text'
    if not isinstance(content.get("resolved_scenario", {}), dict):
        return 'is JSON, but its "resolved_scenario" is no table'
    return ""


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())


_SUMMARY = StoredKind(
    LiveRunSummary, "the summary of a run", "`anabranch run … --json` prints it", is_partial=True, other=_foreign
)


def _samples(summary: Path) -> Table | None:
    """The samples beside the summary in the directory of a run."""
    from anabranch.result.table_file import read_table

    return read_table(summary.parent, "samples", "make the run again") if summary.name == SUMMARY else None


def _run(name: str, path: Path, summary: Mapping[str, Any], samples: Table | None) -> Input:
    swept = SweptScenario(str(summary.get("scenario") or ""), resolved=summary.get("resolved_scenario") or {})
    result = SweepResult([], runs_table([], [Point((), summary["seed"])], [summary]), swept)
    return Input(name, path, "run", result, InputRun(samples, summary))


def _names(paths: Sequence[Path]) -> list[str]:
    """Names of the inputs: the fewest last parts of their paths that distinguish all of them."""
    parts = [_parts(path) for path in paths]
    length = 1
    while length < max(map(len, parts)):
        names = ["/".join(own[-length:]) for own in parts]
        if len(set(names)) == len(names):
            break
        length += 1
    names = ["/".join(own[-length:]) for own in parts]
    short = [name if len(name) <= MOST_OF_A_NAME else f"…{name[1 - MOST_OF_A_NAME :]}" for name in names]
    again = [name if names.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(names, 1)]
    return short if len(set(short)) == len(short) else again


def _parts(path: Path) -> tuple[str, ...]:
    whole = path if path.name not in {"", ".", ".."} else path.resolve()
    if whole.name in {SUMMARY, SWEEP_FILE} and whole.parent.name:
        whole = whole.parent
    elif whole.suffix in {".json", ".toml"}:
        whole = whole.with_suffix("")
    return tuple(part for part in whole.parts if part not in {"/", "..", "."}) or (str(path),)
