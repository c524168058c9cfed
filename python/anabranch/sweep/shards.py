"""Parts of a sweep that run anywhere, and their merging.

A shard is a directory with the finished points and ``shard.json``, which describes the whole sweep and this part of it.
Point number k of the sweep belongs to shard k mod N + 1, which spreads slow corners of a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast

from anabranch.errors import UserError
from anabranch.files.files import NoSuchFileError
from anabranch.files.output import to_json
from anabranch.files.output_file import write_whole
from anabranch.files.stored import Range, StoredKind
from anabranch.keys.grid import MAX_POINTS, axes_of
from anabranch.limits import MAX_SEED
from anabranch.result.summary import AnySummary
from anabranch.sweep.design import Design, grid
from anabranch.sweep.figures import Figures
from anabranch.sweep.maker import Jobs
from anabranch.sweep.points import Keys, Points
from anabranch.sweep.space import read_space
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.sweep.sweep import SweepResult

FORMAT = 1
SHARD_FILE = "shard.json"
MOST_SHARDS = 1_000_000
_AGAIN = "make the shard again"


class Ranges(TypedDict):
    """Ranges of a sweep, design and number of points, as requested."""

    ranges: dict[str, str]
    design: str | None
    points: int | None


class Plan(TypedDict):
    """A whole sweep. Shards with the same plan belong together."""

    build: str
    text: str
    file: str
    sets: list[str]
    axes: dict[str, list[Any]]
    first_seed: Annotated[int, Range(0, MAX_SEED)]
    repeat: Annotated[int, Range(1, MAX_POINTS)]
    digest: bool
    untrusted: bool
    title: str
    resolved: dict[str, Any]
    space: Ranges | None


class ShardFile(Plan):
    """``shard.json``."""

    format: Literal[1]
    kind: Literal["shard"]
    part: Annotated[int, Range(1, MOST_SHARDS)]
    of: Annotated[int, Range(1, MOST_SHARDS)]


def _points(plan: Plan) -> Design:
    """Every point, in the order of the tables."""
    factors = grid(plan["axes"])
    if (given := plan["space"]) is not None:
        space = read_space(given["ranges"], given["design"], given["points"])
        factors += [space.factor()] if space is not None else []
    return Design(factors, plan["first_seed"], plan["repeat"])


def _other(content: Any) -> str:
    if not isinstance(content, dict) or content.get("kind") != "shard" or content.get("format") != FORMAT:
        return f"is no shard of format {FORMAT}"
    return ""


_SHARD = StoredKind(ShardFile, "a shard of a sweep", _AGAIN, other=_other)


def parse_shard(text: str) -> tuple[int, int]:
    """``I/N`` as two numbers.

    Raises:
        UserError: It has another form.
    """
    part, slash, parts = text.partition("/")
    if slash and part.isascii() and parts.isascii() and part.isdigit() and parts.isdigit():
        return check_shard((int(part), int(parts)))
    raise UserError(
        f"{argument('shard', text)}: I/N was expected, the part and how many there are", hint=argument("shard", "1/4")
    )


def check_shard(shard: tuple[int, int]) -> tuple[int, int]:
    """Check a part and the number of parts.

    Raises:
        UserError: There is no such part.
    """
    part, parts = shard
    if not 1 <= part <= parts <= MOST_SHARDS:
        raise UserError(
            f"{argument('shard', f'{part}/{parts}')}: there is no such part",
            hint=f"parts count from 1, and there are at most {MOST_SHARDS:,}",
        )
    return part, parts


def write_shard(directory: Path, shard: tuple[int, int], plan: Plan) -> None:
    """Write into a directory which part of which sweep it holds.

    Raises:
        UserError: It holds another part or sweep.
    """
    path = directory / SHARD_FILE
    content = {"format": FORMAT, "kind": "shard", "part": shard[0], "of": shard[1], **plan}
    if path.exists():
        there, there_plan = _read(directory)
        # Another build is allowed: it makes the points again.
        if there != shard or {**there_plan, "build": ""} != {**plan, "build": ""}:
            raise UserError(
                f"{directory} holds shard {there[0]}/{there[1]} of "
                f"{'this' if there != shard else 'another'} sweep; it is left as it is",
                hint=f"give {argument('out')} a separate directory for each shard",
            )
    write_whole(path, to_json(content))


def _read(directory: Path) -> tuple[tuple[int, int], Plan]:
    path = directory / SHARD_FILE
    try:
        content = _SHARD.read(path)
    except NoSuchFileError:
        raise UserError(
            f"{directory} is no shard: it has no {SHARD_FILE}",
            hint=f"one is made by anabranch sweep FILE {argument('shard', 'I/N')} {argument('out', 'DIR')}",
        ) from None
    if content["part"] > content["of"]:
        raise UserError(f"{path}: there is no part {content['part']} of {content['of']}", hint=_AGAIN)
    plan = cast("Plan", {key: value for key, value in content.items() if key in Plan.__annotations__})
    _check_points(path, plan)
    return (content["part"], content["of"]), plan


def _check_points(path: Path, plan: Plan) -> None:
    """Reject a plan that no sweep can have.

    Raises:
        UserError: Its ranges are wrong, or it has no run or too many.
    """
    try:
        axes_of(plan["axes"])
        runs = len(_points(plan))
    except (UserError, OverflowError) as error:
        raise UserError(f"{path}: {error}", hint=_AGAIN) from None
    if not 1 <= runs <= MAX_POINTS:
        raise UserError(f"{path} has {runs:,} runs; 1 to {MAX_POINTS:,} were expected", hint=_AGAIN)
    if plan["first_seed"] + plan["repeat"] - 1 > MAX_SEED:
        raise UserError(f"{path}: seeds up to {MAX_SEED} were expected", hint=_AGAIN)


def merge(directories: Sequence[str | Path], out: str | Path | None = None) -> SweepResult:
    """The sweep whose shards are in these directories; see :meth:`anabranch.SweepResult.merge`."""
    from anabranch.files.output import check_target, whole_directory
    from anabranch.sweep.file import SweepDirectory
    from anabranch.sweep.sweep import SweepResult, SweptScenario

    if not directories:
        raise UserError("there are no shards to merge", hint="give their directories")
    shards = [(Path(directory), *_read(Path(directory))) for directory in directories]
    first, (_, parts), plan = shards[0]
    for directory, (_, of), other in shards[1:]:
        if other["build"] != plan["build"]:
            raise UserError(f"{directory} was made by another build of the engine than {first}")
        if of != parts or other != plan:
            raise UserError(f"{directory} and {first} are shards of different sweeps")
    homes: dict[int, list[Points]] = {}
    unusable: list[str] = []
    for directory, (part, _), _ in shards:
        home = Points(directory, Path(), unusable.append, build=plan["build"], checks_files=False)
        home.remedy = "it is not used"
        homes.setdefault(part, []).append(home)
    missing = [str(part) for part in range(1, parts + 1) if part not in homes]
    if missing:
        shown = ", ".join(missing[:6]) + (", …" if len(missing) > 6 else "")
        raise UserError(f"of {parts} shards {len(missing)} are missing: {shown}")
    if out is not None:
        check_target(Path(out), "sweep")
        if Path(out).exists() and any(Path(out).iterdir()):
            raise UserError(f"{argument('out', out)} is not empty", hint="give a new directory")
    points = _points(plan)
    jobs = Jobs(plan["text"], plan["file"], plan["sets"], points.axes, points)
    keys = Keys(plan["text"], digest=plan["digest"], untrusted=plan["untrusted"], build=plan["build"])
    figures = Figures(len(points))
    lacking: dict[int, int] = {}
    for run in range(len(points)):
        part = run % parts + 1
        _, _, sets, seed = jobs[run]
        key = keys.of(sets, seed)
        summary = next((s for home in homes[part] if (s := home.read(key, AnySummary)) is not None), None)
        if summary is None:
            lacking[part] = lacking.get(part, 0) + 1
        else:
            figures.add(run, summary)
    if lacking:
        part, runs = next(iter(lacking.items()))
        raise UserError(
            f"shard {part}/{parts} lacks {runs} of its runs"
            + (f", and {len(lacking) - 1} more shards lack some" if len(lacking) > 1 else ""),
            hint="\n  ".join([*unusable, "call its command again: it goes on where it stopped"]),
        )
    swept = SweptScenario(plan["title"], plan["sets"], plan["resolved"])
    result = SweepResult(points.axes, figures.table(points.axes, points), swept)
    if out is not None:
        with whole_directory(Path(out), "sweep") as aside:
            SweepDirectory(aside).finish(result)
    return result
