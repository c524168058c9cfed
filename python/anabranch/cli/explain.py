"""``anabranch list`` and ``anabranch explain``: the engine's registry, the format's keys, and the studies that ship."""

from __future__ import annotations

import json as json_module
import re
from dataclasses import dataclass
from typing import Annotated, Any

from anabranch.cli import keys
from anabranch.cli.blocks import LABEL, labelled, write
from anabranch.cli.command import Argument, command
from anabranch.cli.common import console, print_json, styled
from anabranch.cli.options import Json
from anabranch.keys.registry import Item, Parameter, aliases, engine_registry
from anabranch.text.lines import wrapped


def registry() -> list[Item]:
    """Everything that has a name: the engine's items, then studies."""
    from anabranch.files.checkout import shipped_studies
    from anabranch.scenario import read_text
    from anabranch.text import toml_text

    items = [*engine_registry(), *keys.components(keys.schema())]
    for name, directory in shipped_studies().items():
        path = directory / "study.toml"
        values = toml_text.parse(read_text(path), str(path))
        items.append(
            {
                "kind": "study",
                "name": name,
                "title": str(values.get("title", name)),
                "summary": str(values.get("about", "")),
                "sources": [{"id": str(values.get("source", "")), "items": []}],
                "parameters": [],
                "details": {str(c.get("id")): str(c.get("claim")) for c in values.get("claim", [])},
            }
        )
    return items


_KINDS = {
    "cc": "Congestion controls", "queue": "Queues", "reorder": "Reordering in a queue",
    "impair": "Impairments of a link",
    "control": "Controls of a link group", "split": "Splitters of a gateway", "restore": "Restorers of a gateway",
    "remedy": "Remedies for reordering", "fec": "Error correction", "workload": "Workloads", "stack": "Stack profiles",
    "path": "Ready paths of a link", "service": "Capacity of a link", "delay": "Delay of a link", "study": "Studies",
}  # fmt: skip
"""Titles of the kinds in the list."""
_MOST_NAME = 22
"""Columns of a name in the list; a longer name has a separate line."""


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """The options of ``list``."""

    kind: Annotated[
        str | None, Argument("[KIND]", "cc, queue, impair, stack, workload, study, …; all when left out.")
    ] = None
    json: Json = False


@command(ListOptions, "anabranch list queue", name="list")
def list_kinds(options: ListOptions) -> None:
    """List components, studies and formats, by kind."""
    _list(options.kind, json=options.json)


def _list(kind: str | None, *, json: bool) -> None:
    """Print the registry, or one kind of it.

    Raises:
        UserError: There is no such kind.
    """
    from anabranch.errors import UserError, nearest

    items = registry()
    kinds = list(dict.fromkeys(item["kind"] for item in items))
    if kind is not None:
        if kind not in kinds and kind.removesuffix("s") in kinds:
            kind = kind.removesuffix("s")
        if kind not in kinds:
            raise UserError(f'there is no kind "{kind}"', hint=nearest(kind, kinds))
        items = [item for item in items if item["kind"] == kind]
    if json:
        print_json(
            [
                {"kind": item["kind"], "name": item["name"], "title": item["title"], "summary": item["summary"],
                 "aliases": aliases(item)}
                for item in items
            ]
        )  # fmt: skip
        return
    out = console()
    for number, shown in enumerate(dict.fromkeys(item["kind"] for item in items)):
        if number:
            out.print()
        out.print(styled(f"{_KINDS.get(shown, shown)} ({shown})"))
        write(out, (line for item in items if item["kind"] == shown for line in _entry(item)))
    if kind is None:
        write(out, ["", "anabranch explain NAME describes one of them, a key, or a name of results."])


def _entry(item: Item) -> list[str]:
    """Lines of the list for one item: its names and its description."""
    names = ", ".join([item["name"], *aliases(item)])
    indent = " " * (_MOST_NAME + 4)
    if len(names) > _MOST_NAME:
        return [f"  {names}", *wrapped(indent + _line(item), indent)]
    return wrapped(f"  {names:<{_MOST_NAME}}  {_line(item)}", indent)


def _line(item: Item) -> str:
    """Description of an item in one line: a study's title, or the first sentence of the summary."""
    if item["kind"] == "study" or not item["summary"]:
        return str(item["title"])
    return re.split(r"(?<=\.)\s", " ".join(item["summary"].split()))[0]


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The options of ``explain``."""

    names: Annotated[
        tuple[str, ...],
        Argument(
            "[NAME]",
            "A name of `anabranch list` or a common synonym, a key or path of scenario files, or a name of results; "
            "all by kind when left out.",
        ),
    ] = ()
    json: Json = False


@command(
    ExplainOptions,
    "anabranch explain cubic",
    "anabranch explain link.rate",
    "anabranch explain goodput",
    "anabranch explain",
)
def explain_names(options: ExplainOptions) -> None:
    """Describe a name: its effect, sources, parameters and bounds."""
    if options.names:
        _explain(" ".join(options.names), json=options.json)
    else:
        _list(None, json=options.json)


def _explain(name: str, *, json: bool) -> None:
    """Print everything that a name means: items, keys, the target of a path, results.

    Raises:
        UserError: There is nothing of that name.
    """
    from anabranch.cli import results
    from anabranch.errors import UserError
    from anabranch.text.synonyms import meant

    items = registry()
    named = results.named(name)
    try:
        found = lookup(name, items)
    except UserError:
        if not named:
            raise
        results.explain(name, named, json=json)
        return
    is_same = named == [name]
    known = found[0] if isinstance(found, tuple) else found[0]["name"]
    if json:
        _print_found(known, found, items, results.to_json(name) if is_same else None)
        return
    told = f'"{name}" is `{known}` here.' if known != name and known == meant(name) else ""
    # A path means a key.
    if named and not is_same and "." not in name:
        told += f"{' ' if told else ''}{results.pointer(name, named)}"
    if told:
        write(console(), [*wrapped(told, ""), ""])
    if isinstance(found, tuple):
        _explain_key(*found, items)
    else:
        for item in found:
            _print(item)
    if is_same:
        console().print()
        results.explain(name, named, json=False)


def _print_found(
    known: str,
    found: list[Item] | tuple[str, list[keys.Key]],
    items: list[Item],
    result: dict[str, Any] | None,
) -> None:
    """Print JSON; a key or a single component includes the result of the same name."""
    more = {"result": result} if result is not None else {}
    if isinstance(found, tuple):
        print_json({**_key_json(known, found[1], items), **more})
    else:
        print_json({**found[0], **more} if len(found) == 1 else found)


def lookup(name: str, items: list[Item]) -> list[Item] | tuple[str, list[keys.Key]]:
    """The items that a name, path or synonym means, or the name of a key and its places.

    Raises:
        UserError: The name is unknown.
    """
    from anabranch.cli import paths
    from anabranch.errors import UserError, nearest
    from anabranch.text.synonyms import meant, plain

    known = _keys(items)
    for same in (str, plain):
        found = [item for item in items if same(name) == same(item["name"])] or [
            item for item in items if same(name) in map(same, aliases(item))
        ]
        if found:
            return found
        for key, places in known.items():
            if same(name) == same(key):
                return key, places
    target = meant(name)
    if target is not None:
        return lookup(target, items)
    if "." in name:
        led = paths.resolve(name, items, known)
        return (name, led) if isinstance(led, list) else [led]
    from anabranch.cli import results

    names = [word for item in items for word in (item["name"], *aliases(item))]
    # There are many names of results, so a few letters in common are no similarity.
    close = results.nearest(name, [*names, *known]) or nearest(name, [*names, *known])
    hint = "anabranch list shows all names" if close.startswith("valid: ") else close
    raise UserError(f'there is nothing called "{name}"', hint=hint)


def _keys(items: list[Item]) -> dict[str, list[keys.Key]]:
    """Every key of the format, and every parameter of a component, by name."""
    found: dict[str, list[keys.Key]] = {}
    for key in keys.keys(keys.schema()):
        found.setdefault(key.name, []).append(key)
    for item in items:
        for p in item["parameters"]:
            place = f"{item['name']} ({item['kind']})"
            key = keys.Key(p["name"], item["kind"], place, _type(p), p.get("default"), p["description"])
            found.setdefault(key.name, []).append(key)
    return found


def _stacks_with(found: list[keys.Key], items: list[Item]) -> list[Item]:
    """The stack profiles, where the key is one of their switches."""
    switch = any(key.table == keys.TRANSPORT for key in found)
    return [item for item in items if item["kind"] == "stack" and switch and found[0].name in item["details"]]


def _key_json(name: str, found: list[keys.Key], items: list[Item]) -> dict[str, object]:
    places = [{"place": k.place, "type": k.value_type, "default": k.default, "description": k.meaning} for k in found]
    profiles = {item["name"]: item["details"][found[0].name] for item in _stacks_with(found, items)}
    return {"kind": "key", "name": name, "places": places, "profiles": profiles}


def _explain_key(name: str, found: list[keys.Key], items: list[Item]) -> None:
    """Print the places of a key, its values, and its setting in each stack profile."""
    key_name = found[0].name
    stacks = _stacks_with(found, items)
    out = console()
    out.print(styled(name), "(key)")
    for key in found:
        default = "the profile's" if key.table == keys.TRANSPORT else key.default
        write(out, ["", *_entry_of(key.place, key.value_type, "", default, key.meaning)])
    if stacks:
        write(out, ["", "In each profile"])
        for item in stacks:
            names = ", ".join([item["name"], *aliases(item)])
            write(out, labelled(names, _switch(key_name, item["details"][key_name], _sizes())))


def _sizes() -> set[str]:
    """The switches whose numbers are bytes."""
    return {k.name for k in keys.keys(keys.schema()) if k.table == keys.TRANSPORT and k.value_type.startswith("size")}


def _switch(name: str, value: Any, sizes: set[str]) -> str:
    return f"{value} bytes" if name in sizes and isinstance(value, int) else _value(value)


def _print_profile(details: dict[str, Any]) -> None:
    """Print the switches of a stack profile, each with its reason, and the features that are not modelled."""
    out, sizes, reasons = console(), _sizes(), details.get("reasons", {})
    write(out, ["", "Switches"])
    for name, value in details.items():
        if name not in ("aliases", "reasons", "not_modelled"):
            write(out, labelled(name, _switch(name, value, sizes)))
            if name in reasons:
                write(out, labelled("", reasons[name]))
    if details.get("not_modelled"):
        write(out, ["", "Not modelled in this version:"])
        for line in details["not_modelled"]:
            write(out, wrapped(f"- {line}", "  "))


def _print_path(item: Item) -> None:
    """Print the values of a ready path, its assumptions, and its use in a scenario."""
    out = console()
    write(out, ["", "Values"])
    for key, value in item["details"].items():
        if key != "assumed":
            write(out, labelled(key, _inline(value)))
    write(out, ["", "Assumed, because no source says so"])
    for line in item["details"].get("assumed", []):
        write(out, wrapped(f"- {line}", "  "))
    named = f'path = "{item["name"]}"'
    write(out, ["", "In a scenario", "  [link.NAME]", f"  {named}", '  between = ["network", "subscriber"]'])


def _inline(value: Any) -> str:
    """A value as a scenario has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + " }"
    return json_module.dumps(value, ensure_ascii=False)


def _print(item: Item) -> None:
    out = console()
    first, *more = wrapped(f"{item['name']} ({item['kind']}): {item['title']}", "  ")
    out.print(styled(item["name"]), first.removeprefix(f"{item['name']} "), soft_wrap=True)
    write(out, more)
    if aliases(item):
        write(out, ["", *wrapped(f"Also called: {', '.join(aliases(item))}", "  ")])
    if item["summary"]:
        write(out, ["", *wrapped(" ".join(item["summary"].split()))])
    if item["sources"]:
        cited = (", ".join([source["id"], *source["items"]]) for source in item["sources"])
        write(out, ["", *wrapped(f"Source: {'; '.join(cited)}", "  ")])
    if item["parameters"]:
        write(out, ["", "Parameters"])
        for p in item["parameters"]:
            write(out, _entry_of(p["name"], _type(p), _bounds(p), p.get("default"), p["description"]))
    if item["kind"] == "stack":
        _print_profile(item["details"])
    elif item["kind"] == "path":
        _print_path(item)
    elif details := {key: value for key, value in item["details"].items() if key != "aliases"}:
        write(out, ["", "Claims" if item["kind"] == "study" else "Details"])
        for key, value in details.items():
            write(out, labelled(key, _value(value), 4 if item["kind"] == "study" else LABEL))


def _entry_of(name: str, kind: str, bounds: str, default: Any, meaning: str) -> list[str]:
    """Lines of a parameter or key: type and bounds first, then the meaning."""
    # "duration (s, ms)" as "duration in s, ms"; the units of a count of packets say nothing.
    taken = re.sub(r" \((.+)\)$", r" in \1", kind.replace("packets (packet (packets))", "packets"))
    facts = [bounds] if bounds else []
    if default is not None:
        facts.append("required" if default == "required" else f"default {_value(default)}")
    # A number and its unit stay on one line.
    whole = [fact.replace(" ", "\u00a0") if len(fact) < LABEL else fact for fact in facts]
    first = wrapped(f"  {name}: {'; '.join([taken, *whole])}", "    ")
    lines = [line.replace("\u00a0", " ") for line in first]
    return [*lines, *wrapped(f"      {' '.join(meaning.split())}", "      ")] if meaning else lines


def _value(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json_module.dumps(value, ensure_ascii=False)


def _type(parameter: Parameter) -> str:
    units = parameter.get("units")
    return f"{parameter['type']} ({units})" if units else parameter["type"]


_LONGEST = "9223372.036854775807 s"
"""The longest duration of the clock, which bounds every duration without a separate bound."""


def _bounds(parameter: Parameter) -> str:
    low, high = parameter.get("minimum"), parameter.get("maximum")
    if high == _LONGEST:
        high = None
    if low is None and high is None:
        return ""
    if low is None or high is None:
        return f"at least {_value(low)}" if high is None else f"at most {_value(high)}"
    return f"{_value(low)} to {_value(high)}"
