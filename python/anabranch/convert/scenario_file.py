"""Scenario files: read unchanged, written from a description, or reduced to one link with every value written out."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from anabranch import _engine
from anabranch.convert import step_table
from anabranch.convert.content import PAPER_PACKET, Description, Link, Names, Notes, Source, Written
from anabranch.errors import UserError, nearest
from anabranch.text import toml_text
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.scenario import Scenario

MAX_TRACE_BYTES = 256 * 1024 * 1024


def recognise(name: str, _head: bytes) -> bool:
    """Whether a file is a scenario, by its name."""
    return name.lower().endswith(".toml")


def open_scenario(source: Source) -> Scenario:
    """A scenario from content that has been read; its directory is the base of the files that it names.

    Raises:
        UserError: It is not UTF-8.
    """
    from anabranch.scenario import Scenario

    file = source.name if source.name != "-" else "<standard input>"
    return Scenario.from_text(source.text().text, file=file)


def write(description: Description, _names: Names, _notes: Notes) -> Written:
    """The scenario file, and the files that it names."""
    return Written(toml_text.write_document(description.document).encode(), description.files)


def describe(scenario: Scenario, description: Description | None, at: Path, link: str | None, notes: Notes) -> Link:
    """One link of a scenario.

    Args:
        scenario: The scenario.
        description: The description it was made from, if the files it names are not on disk.
        at: The base directory of the files that it names.
        link: The link's name; may be left out if there is one.
        notes: Receives properties of the link that no format of one link can express.

    Raises:
        ScenarioError: The scenario is wrong.
        UserError: There is no such link, or there are several and none is named.
    """
    from anabranch.files.files import read_bytes

    if description is not None and description.files:
        with tempfile.TemporaryDirectory() as directory:
            for name, content in description.files.items():
                (Path(directory) / name).write_bytes(content)
            file = str(Path(directory) / "scenario.toml")
            from anabranch.scenario import Scenario

            resolved = Scenario.from_text(scenario.text, file=file).resolve()["resolved_scenario"]
        files = dict(description.files)
    else:
        resolved = scenario.resolve()["resolved_scenario"]
        files = {}
    name, found = choose(resolved, link)
    sides = []
    for direction in ("forward", "reverse"):
        side = dict(found[direction])
        side["service"] = _rate_alone(side["service"], f"link.{name}.{direction}", notes)
        for key in ("service", "delay"):
            value = side[key]
            trace = value.get("file") if isinstance(value, Mapping) and value["kind"] == "trace" else None
            if trace is not None and trace not in files:
                shipped = _engine.library_file(trace)
                files[trace] = shipped.encode() if shipped else read_bytes(at / trace, most=MAX_TRACE_BYTES)
            if trace is not None and key == "service":
                side["mean_rate"] = _mean_rate(files[trace])
        sides.append(side)
    _note_changes(resolved, name, notes)
    return Link(name, (found["between"][0], found["between"][1]), sides[0], sides[1], files)


def _rate_alone(service: Mapping[str, Any], where: str, notes: Notes) -> Mapping[str, Any]:
    """The service without access to a shared medium, which no other format has."""
    if service["kind"] in ("fixed", "trace"):
        return service
    notes.lost(f"{where}.service: {service['kind']}; its rate alone is written, without the access to the medium")
    if "file" not in service:
        return {"kind": "fixed"}
    return {"kind": "trace", **{key: service[key] for key in ("file", "repeat") if key in service}}


def without_tables(link: Link, notes: Notes) -> Link:
    """The link without tables, which other formats lack: opportunities for rates, the mean for delays."""
    files = dict(link.files)
    sides = []
    for way, given in (("forward", link.forward), ("reverse", link.reverse)):
        side = dict(given)
        where = f"link.{link.name}.{way}"
        service, delay = side["service"], side["delay"]
        if service["kind"] == "trace":
            if (table := step_table.read(files[service["file"]], "rate")) is not None:
                name = f"{PurePosixPath(service['file']).name.removeprefix('anabranch:')}.opportunities"
                files[name] = table.opportunities()
                side["service"] = {**service, "file": name}
                notes.lost(f"{where}.service: rates over time, rounded to packets and milliseconds")
            if "repeat" in service:
                notes.lost(f"{where}.service.repeat: the trace begins again without end")
        if isinstance(delay, Mapping):
            table = step_table.read(files[delay["file"]], "delay")
            mean = table.mean_delay_ms() if table is not None else Fraction(0)
            side["delay"] = f"{float(mean):.6f} ms"
            notes.lost(f"{where}.delay: a trace; its mean, {float(mean):.6g} ms, replaces it")
        if side.get("overtake"):
            notes.lost(f"{where}.overtake")
        sides.append(side)
    return Link(link.name, link.ends, sides[0], sides[1], files)


def choose(resolved: Mapping[str, Any], link: str | None) -> tuple[str, Mapping[str, Any]]:
    """A link by its name, or the only one.

    Raises:
        UserError: There is no such link, or there are several and none is named.
    """
    links: Mapping[str, Any] = resolved.get("link", {})
    if link is None and len(links) == 1:
        link = next(iter(links))
    if link is None:
        what = "a scenario without a link" if not links else f"the scenario has {len(links)} links"
        hint = f"{argument('link', 'NAME')}: {', '.join(links)}" if links else None
        raise UserError(f"{what}; one was expected", hint=hint)
    if link not in links:
        raise UserError(f'the scenario has no link "{link}"', hint=nearest(link, links))
    return link, links[link]


def _note_changes(resolved: Mapping[str, Any], link: str, notes: Notes) -> None:
    for change in resolved.get("at", []):
        for path in change.get("set", {}):
            if path.startswith((f"link.{link}.", f'link."{link}".')):
                notes.lost(f"[[at]] {change['time']}: {path} changes")


def _mean_rate(trace: bytes) -> int:
    """Mean bits per second of a capacity trace that the engine has accepted."""
    if (table := step_table.read(trace, "rate")) is not None:
        return table.mean_rate()
    times = [line.split(b"#")[0].strip() for line in trace.splitlines()]
    times = [time for time in times if time]
    return max(len(times) * 8 * PAPER_PACKET * 1000 // int(times[-1]), 1)
