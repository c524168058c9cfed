"""The page of JSON documents: of `diagnose`, and of the gateway's `status`."""

from __future__ import annotations

import re
from pathlib import Path

from reference.declared import UNITS
from reference.markdown import NOTICE, code, table
from reference.structs import DIAGNOSIS, STATUS, Declared, Field, declared, inner

INTRODUCTION = """\
What programs print beside the [results of a run](results.md), name by name. A figure that does not apply is null.
`NAME` is a name of yours, `[]` is each entry of a list. A name that has been released keeps its meaning; there
may be more of them.

| names of | page |
| --- | --- |
| commands and their options | [Commands](cli.md) |
| scenario files: links, `path`, services, `devices`, `addresses`, `match`, `dscp` | [Scenario files](scenario.md) |
| ready paths | [Ready paths](path.md) |
| queues, impairments, services, controls, and their parameters | [Components](components.md) |
| a run's summary, its tables, a gateway's plan | [Results](results.md) |
| the gateway's configuration | [Bonding two WAN links](../guides/bonding.md) |
| captures' diagnoses, the gateway's status | this page |
"""

ABOUT_DIAGNOSE = """\
`anabranch diagnose CAPTURE --json` prints this document, and `anabranch.diagnose` returns it
([guide](../guides/diagnose.md)). `path` is empty where a connection has too little data. `--replay` adds
`connections[].replay`, and `--advise` fills `connections[].advice`; `--live` adds `live` to some remedies.
"""

ABOUT_STATUS = """\
`anabranch-gateway status FILE --json` prints this document; with `--watch`, one a second on a line
([guide](../guides/gateway-operations.md)).
"""

_WORDS = {
    "bool": "yes or no",
    "String": "text",
    "&'static str": "text",
    "SocketAddr": "address and port",
    "IpAddr": "address",
}
_NUMBERS = frozenset({"f64", "u64", "u32", "u16", "u8", "i64", "usize", "Estimate"})
HEAD = ("key", "unit", "meaning")


def page(root: Path) -> str:
    """Return the page."""
    out = [NOTICE, "# JSON documents\n", INTRODUCTION]
    for title, about, document in (
        ("Diagnosis of a capture", ABOUT_DIAGNOSE, DIAGNOSIS),
        ("Status of a gateway", ABOUT_STATUS, STATUS),
    ):
        out += [f"## {title}\n", about]
        found = declared(root, document)
        for name, (first, *further) in found.paths(document.root).items():
            out.append(f"### {first or 'The document'}\n")
            if further:
                out.append(f"Also of {', '.join(code(path) for path in further)}.\n")
            out.append(table(HEAD, [(code(f.name), unit(f, found), f.meaning) for f in found.unfolded(name)]))
    return "\n".join(out)


def unit(field: Field, found: Declared) -> str:
    """The unit of a figure, or the form of a value."""
    if (one := re.fullmatch(r"Option<(.*)>", field.kind)) is not None:
        return f"{unit(field._replace(kind=one[1]), found)} or null"
    kind, suffix = inner(field.kind)
    if suffix:
        return "list" if suffix.startswith("[]") else "table"
    if kind in found.enums or kind in found.unions:
        return "text"
    if kind in _NUMBERS:
        of_name = next((unit for ending, unit in UNITS.items() if field.name.endswith(ending)), None)
        return of_name or {"f64": "number", "Estimate": "estimate"}.get(kind, "count")
    return _WORDS.get(kind, "table")
