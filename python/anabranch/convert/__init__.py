"""Conversion of other tools' inputs and outputs to scenarios and tables of this package, and back.

:data:`anabranch.convert.formats.FORMATS` lists the formats; each has a separate module. A reader gives a scenario of
one link or of a topology (:class:`~anabranch.convert.content.Description`), a table
(:class:`~anabranch.convert.content.Table`) or a run (:class:`~anabranch.convert.content.Run`). A writer takes one of
them, or one link with every value written out. Properties that the target cannot express become notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.convert import formats
from anabranch.convert.content import Description, Names, Notes, Run, Source, Table, Written
from anabranch.errors import UserError
from anabranch.files.files import MAX_RESULT_BYTES, read_bytes
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.convert.formats import Format

__all__ = ["Converted", "Options", "convert"]

_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class Options:
    """The options of a conversion.

    Attributes:
        source: The input's format; recognised when left out.
        target: The output's format; by default that of ``out``, or the usual one for the input.
        out: The output's path, for its format and the names of files beside it.
        link: The link to write; may be left out if there is one.
        flow: The flow to write; by default all.
        routing: Routing of a topology's flows: ``"hops"``, ``"weights"`` or ``"ecmp"``.
    """

    source: str | None = None
    target: str | None = None
    out: Path | None = None
    link: str | None = None
    flow: str | None = None
    routing: str | None = None


@dataclass(frozen=True)
class Converted:
    """The result of a conversion: the output, the files beside it, lost properties, and additions."""

    target: str
    content: bytes
    files: Mapping[str, bytes]
    notes: tuple[str, ...]
    remarks: tuple[str, ...]


def convert(path: str | Path, options: Options | None = None) -> Converted:
    """Convert a file, or the directory that ``anabranch run --out`` has written.

    Raises:
        UserError: The input cannot be read, is not of its format, or the target cannot hold it.
        ScenarioError: The input is a scenario, and it is wrong.
    """
    options = options or Options()
    path = Path(path)
    if path.is_dir():
        source, found = (
            Source(str(path), b"", path),
            formats.by_name(options.source or "run", formats.readable(), "source"),
        )
    else:
        source = Source(str(path), read_bytes(path, most=MAX_RESULT_BYTES), path.parent)
        found = _source_format(source, options)
    return _convert(source, found, options)


def convert_bytes(name: str, content: bytes, directory: Path, options: Options) -> Converted:
    """Convert content that has been read, such as standard input.

    Raises:
        UserError: As in :func:`convert`.
    """
    source = Source(name, content, directory)
    return _convert(source, _source_format(source, options), options)


def _source_format(source: Source, options: Options) -> Format:
    if options.source is not None:
        return formats.by_name(options.source, formats.readable(), "source")
    return formats.recognise(source.name, source.content[:_HEAD_BYTES])


def _convert(source: Source, found: Format, options: Options) -> Converted:
    if options.routing is not None:
        source = _routed(source, found, options.routing)
    target = _target_format(source, found, options)
    notes = Notes()
    compressed = options.out is not None and options.out.name.lower().endswith(".gz")
    names = Names(_stem(options.out, target), compressed)
    written = _write(source, found, target, names, notes, options)
    return Converted(target.name, written.content, written.files, tuple(notes.lines), tuple(notes.remarks))


def _routed(source: Source, found: Format, routing: str) -> Source:
    """The source with the requested routing.

    Raises:
        UserError: There is none of that name, or the input is no topology.
    """
    from anabranch.convert import topology

    topology.check_routing(routing)
    if found.reader is None or not found.reader[0].startswith("topology_"):
        told = argument("routing", routing)
        raise UserError(
            f"{told} is of topologies, and {source.name} has the format `{found.name}`", hint="leave it out"
        )
    return replace(source, routing=routing)


def _target_format(source: Source, found: Format, options: Options) -> Format:
    """The format of the output.

    Raises:
        UserError: The format is not given, or is unknown.
    """
    if options.target is not None:
        return formats.by_name(options.target, formats.writable(), "target")
    by_ending = formats.of_output(options.out.name) if options.out is not None else None
    if by_ending is not None:
        return by_ending
    kind = found.reader[1] if found.reader else ""
    usual = {"scenario": "scenario", "table": "csv"}.get(kind) if found.name != "scenario" else None
    if usual is None:
        # Errors in the input are reported first.
        _check(source, found)
        names = ", ".join(f.name for f in formats.writable() if f.name != found.name)
        raise UserError(
            f"{source.name} has the format `{found.name}`, and nothing names the format of the output",
            hint=f"{argument('target', 'FORMAT')}: {names}",
        )
    return formats.by_name(usual, formats.writable(), "target")


def _check(source: Source, found: Format) -> None:
    from anabranch.convert import scenario_file

    if found.name == "scenario":
        scenario_file.open_scenario(source).resolve()
    else:
        found.read(source, Notes())


def _stem(out: Path | None, target: Format) -> str:
    if out is None:
        return target.name
    ending = next((e for e in target.endings if out.name.lower().endswith(e)), out.suffix)
    return out.name[: len(out.name) - len(ending)] or out.name


def _write(source: Source, found: Format, target: Format, names: Names, notes: Notes, options: Options) -> Written:
    wanted = target.writer[1] if target.writer else ""
    kind = found.reader[1] if found.reader else ""
    if kind == "table":
        return _write_table(found.read(source, notes), found, target, names, notes)
    if wanted in ("link", "scenario"):
        return _write_path(source, found, target, names, notes, options)
    return _written(target.write(_run(source, found, notes, options), names, notes))


def _write_table(table: Table, found: Format, target: Format, names: Names, notes: Notes) -> Written:
    wanted = target.writer[1] if target.writer else ""
    if "table" not in wanted:
        possible = ", ".join(f.name for f in formats.writable() if f.writer and "table" in f.writer[1])
        what = "describes no path" if wanted in ("link", "scenario") else "has no packets of a run of ours"
        hint = f"{argument('target', 'FORMAT')}: {possible}"
        raise UserError(f"{found.title} {what}, which {target.name} needs", hint=hint)
    return _written(target.write(table, names, notes))


def _write_path(source: Source, found: Format, target: Format, names: Names, notes: Notes, options: Options) -> Written:
    from anabranch.convert import run_output, scenario_file
    from anabranch.scenario import Scenario
    from anabranch.text import toml_text

    description: Description | None = None
    at = source.directory
    if found.name == "scenario":
        scenario = scenario_file.open_scenario(source)
    elif found.name == "run":
        summary = found.read(source, notes).summary
        file = run_output.original(summary, source.directory)
        at = Path(file).parent
        description = Description(summary["resolved_scenario"])
        scenario = Scenario.from_text(toml_text.write_document(description.document), file=file)
        named = scenario.resolve()["files"] if target.name == "scenario" else []
        if named:
            notes.lost(f"the files that the scenario names ({', '.join(named)}): copy them, or mend their paths")
    else:
        description = found.read(source, notes)
        scenario = Scenario.from_text(toml_text.write_document(description.document), file=source.name)
    wanted = target.writer[1] if target.writer else ""
    if wanted == "link":
        link = scenario_file.describe(scenario, description, at, options.link, notes)
        return _written(target.write(scenario_file.without_tables(link, notes), names, notes))
    if description is None:
        hint = f"{argument('target', 'FORMAT')} names another format"
        raise UserError(f"{source.name} is a scenario already", hint=hint)
    return _written(target.write(description, names, notes))


def _run(source: Source, found: Format, notes: Notes, options: Options) -> Run:
    from anabranch.convert import run_output

    run: Run = found.read(source, notes) if found.name == "run" else run_output.make(source, found, notes)
    return run_output.of_flow(run, options.flow)


def _written(value: Any) -> Written:
    assert isinstance(value, Written)  # noqa: S101 - modules are found by name, which no type checker follows
    return value
