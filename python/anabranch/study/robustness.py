"""The share of the open parameters' plausible range in which a verdict holds.

The result is stored in the study's directory with a digest of its inputs: the parts of ``study.toml`` that decide a
verdict, the scenarios, the engine's version, and the engine's own digests on the quick grid.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from anabranch.errors import UserError
from anabranch.files.output import to_json
from anabranch.files.output_file import write_whole
from anabranch.files.stored import StoredKind
from anabranch.statistics.statistics import latin_hypercube
from anabranch.study import needs
from anabranch.study.definition import Claim, Definition, RobustnessGrid
from anabranch.study.results import Condition, Job, Pool, Results
from anabranch.study.verdict import judge
from anabranch.text.spoken import argument

FILE = "robustness.json"
_DESCRIPTIVE = {"title", "about", "source", "claim", "published", "accept_if", "why", "note", "label", "setting_why",
                "figure", "figures", "invariant", "inconsistent", "artefact", "witness", "section", "table", "live",
                "correction", "before", "takes"}  # fmt: skip


class _PointHolds(TypedDict):
    holds: dict[str, bool | None]


class _PointFile(_PointHolds, total=False):
    parameters: dict[str, Any]


class _RobustnessFile(TypedDict):
    claims: dict[str, float]
    points: list[_PointFile]
    computed_from: str


_KEPT = StoredKind(_RobustnessFile, "a robustness result")


@dataclass(frozen=True)
class Robustness:
    """Stored shares.

    Attributes:
        claims: Claim → share of points where it holds (0‥1).
        points: Number of points.
        stale: The inputs have changed since.
        points_held: Claim → whether it holds, at each point.
        parameters: The open parameters of each point.
    """

    claims: Mapping[str, float]
    points: int
    stale: bool
    points_held: Sequence[Mapping[str, bool | None]] = ()
    parameters: Sequence[Mapping[str, Any]] = ()

    def judged(self, claim_id: str) -> list[tuple[Mapping[str, Any], bool]]:
        """The points at which a claim could be judged: open parameters, and whether it holds."""
        both = zip(self.parameters, self.points_held, strict=True)
        return [(there, held) for there, holds in both if (held := holds.get(claim_id)) is not None]


def compute(definition: Definition, pool: Pool, progress: Callable[[int, int], None] | None = None) -> Robustness:
    """Judge every claim at a Latin hypercube of the open parameters, and store the result.

    Each claim is judged on its robustness grid, or on the quick grid if it has none.

    Raises:
        UserError: The study declares no claim, or no open parameter.
        ScenarioError: A plausible point is not a scenario.
    """
    if not definition.claims:
        raise UserError(
            f"{argument('robustness')} judges claims, and there is no [[claim]]",
            file=str(definition.directory / "study.toml"),
            hint="leave it out",
        )  # fmt: skip
    if not definition.opens:
        raise UserError(
            "there is no [[open]] parameter to vary", file=str(definition.directory / "study.toml"),
            hint="name a parameter that the source leaves open, with a plausible range",
        )  # fmt: skip
    _check_file(definition.directory / FILE)
    quick = asked(definition, pool)
    design = latin_hypercube(definition.robustness_points, len(definition.opens), definition.robustness_seed)
    claims = _judged(definition)
    held: dict[str, int] = {c.id: 0 for c in claims}
    records = []
    points_held = []
    each = len(_distinct(_by_grid(definition, pool, Condition())))
    total = len(quick) + len(design) * each
    pool.make(quick, lambda n: progress(n, total) if progress else None)
    for i, unit in enumerate(design):
        chosen = tuple((p.name, p.at(u)) for p, u in zip(definition.opens, unit, strict=True))
        judging = _by_grid(definition, pool, Condition(opens=chosen))
        base = len(quick) + i * each
        # Use a temporary pool: no other computation needs these runs, and there are many.
        once = Pool(definition, pool.threads, pool.kept)
        once.make(_distinct(judging), lambda n, base=base: progress(base + n, total) if progress else None)  # type: ignore[misc]
        found = {}
        for some, jobs in judging:
            results = once.results(jobs)
            found.update({c.id: judge(c, results).holds for c in some})
        holds = {c.id: found[c.id] for c in claims}
        for claim_id, hold in holds.items():
            held[claim_id] += hold is True
        points_held.append(holds)
        records.append({"parameters": dict(chosen), "holds": holds})
    shares = {claim_id: n / len(design) for claim_id, n in held.items()}
    kept = {
        "format": 1,
        "study": definition.name,
        "computed_from": inputs_digest(definition, pool.results(quick)),
        "grid": "quick",
        "grids": {c.id: _described(c.robustness) for c in claims if c.robustness},
        "claims": shares,
        "points": records,
    }
    write_whole(definition.directory / FILE, to_json(kept))
    points = [dict(record["parameters"]) for record in records]
    return Robustness(shares, len(design), stale=False, points_held=points_held, parameters=points)


def asked(definition: Definition, pool: Pool) -> list[Job]:
    """The runs of the quick grid with the judged claims' variants; their digests show a change of the engine."""
    return needs.only(pool.plan(Condition()), needs.of_claims(definition, _judged(definition)))


def _judged(definition: Definition) -> list[Claim]:
    """The claims whose robustness can be judged: on the quick grid, or on a grid of the claim."""
    return [c for c in definition.claims if c.robustness or not c.full_only]


def _by_grid(definition: Definition, pool: Pool, condition: Condition) -> list[tuple[list[Claim], list[Job]]]:
    """The claims of each grid, with the runs that judge them there."""
    claims = _judged(definition)
    groups = [[c for c in claims if not c.robustness], *([c] for c in claims if c.robustness)]
    return [
        (some, needs.only(pool.plan(replace(condition, grid=some[0].robustness)), needs.of_claims(definition, some)))
        for some in groups
        if some
    ]


def _distinct(judging: list[tuple[list[Claim], list[Job]]]) -> list[Job]:
    return list({job.key: job for _, jobs in judging for job in jobs}.values())


def _described(grid: RobustnessGrid) -> dict[str, object]:
    repeat = {} if grid.repeat is None else {"repeat": grid.repeat}
    return {"axes": {axis: list(values) for axis, values in grid.axes.items()}, **repeat}


def kept(definition: Definition, quick: Callable[[], Results]) -> Robustness | None:
    """The stored result; ``quick`` returns the runs of the quick grid, which show whether it is stale."""
    path = definition.directory / FILE
    if not path.exists():
        return None
    try:
        content = _KEPT.read(path)
    except UserError as error:
        raise UserError(f"not a robustness result: {error.message}", file=str(path), hint="remove it") from None
    stale = content["computed_from"] != inputs_digest(definition, quick())
    points_held = [point["holds"] for point in content["points"]]
    parameters = [point.get("parameters", {}) for point in content["points"]]
    return Robustness(content["claims"], len(points_held), stale, points_held, parameters)


def _check_file(path: Path) -> None:
    """Reject a file that has the name of the result but other content, before any work is done.

    Raises:
        UserError: There is such a file.
    """
    if os.path.lexists(path):
        try:
            _KEPT.read(path)
        except UserError as error:
            raise UserError(
                f"not a robustness result, and left as it is: {error.message}", file=str(path), hint="remove it"
            ) from None


def inputs_digest(definition: Definition, quick: Results) -> str:
    """A hash of everything that decides the verdicts; wording has no influence."""
    from anabranch import _engine

    content: dict[str, object] = {
        "study": _deciding(definition.values),
        "scenarios": {str(path): text for path, text in sorted(definition.texts.items())},
        "engine": _engine.version(),
        "runs": quick.digests(),
    }
    if files := quick.files():
        content["files"] = files
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _deciding(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _deciding(v) for k, v in value.items() if not (k in _DESCRIPTIVE and _is_prose(k, v))}
    return [_deciding(v) for v in value] if isinstance(value, list) else value


def _is_prose(key: str, value: Any) -> bool:
    """Whether an entry is only descriptive. ``claim`` and ``figure`` also name tables; of these, only claims decide."""
    # In a quantity, "table" names its samples, which decides; as a list, it contains the report's tables.
    return (
        (isinstance(value, str) and key != "table")
        # Live runs decide no verdict of the simulator; proofs of inconsistency and earlier readings are judged on
        # separate runs.
        or key
        in {
            "figure",
            "figures",
            "inconsistent",
            "artefact",
            "witness",
            "section",
            "live",
            "correction",
            "before",
            "takes",
        }
        or (key == "table" and isinstance(value, list))
    )
