"""The page of JSON documents: of `diagnose`, and of the gateway's `status`."""

from __future__ import annotations

import re
from pathlib import Path

from reference.declared import UNITS
from reference.markdown import NOTICE, code, table
from reference.structs import DIAGNOSIS, STATUS, Declared, Field, declared, inner
from reference.typed import Declaration, section

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

The document of a qlog is the same: `source` is `qlog`, and each frame number is the number of an event in the file.
`seq` of a retransmission counts the data of all streams in the order of first transmission.

Figures that have a definition elsewhere:

- **`responsiveness`**: round trips per minute, 60,000 ÷ a round trip in milliseconds
  (draft-ietf-ippm-responsiveness). *Idle* uses the least round trip of the connection. *Under load* uses the mean of
  the shortest 95 % of the round trips (the draft's trimmed mean) that were measured while the limit was `bottleneck`,
  ten or more. The draft makes new connections for its probes, and also times TLS and HTTP. A capture has only the
  round trips of the loaded connection, with the delay of its acknowledgments.
- **`rate_used`**: `goodput_mbit_s` of the direction of `path` ÷ `path.rate_mbit_s.value`, if `seen` is `measured`.
  The rate counts IP packets, so that a full path has about 0.95.
- **`fairness[].jain`**: (Σ x)² ÷ (n Σ x²) of the goodputs x of n connections (Jain, Chiu and Hawe 1984). It is 1 if
  all are equal and 1/n if one has everything. The goodputs are of the longest time, 1 s or more, in which most
  connections to one host, or from one host, sent data at once.
- **`quic[].spin_rtt_ms`**: the time between two changes of the spin bit in packets of one end (RFC 9000 §17.4). The
  bit counts as `random` if the median of these times is shorter than half of the handshake's round trip.
"""

SUMS = Declaration(
    "Sums of a diagnosis",
    """\
`anabranch diagnose CAPTURE --by KEY --json` prints this document
([guide](../guides/diagnose.md#many-connections)).
""",
    "Rollup",
    "python/anabranch/diagnosis/rollup.py",
)
COMPARISON = Declaration(
    "Comparison of two captures",
    """\
`anabranch diagnose OLD NEW --compare --json` prints this document
([guide](../guides/diagnose.md#before-and-after-a-change)).
""",
    "Comparison",
    "python/anabranch/diagnosis/difference.py",
)
POINTS = Declaration(
    "Diagnosis of captures at several points",
    """\
`anabranch diagnose CAPTURE CAPTURE... --json` prints this document, and `anabranch.diagnose_points` returns it
([guide](../guides/diagnose-points.md)).
""",
    "Document",
    "python/anabranch/multipoint/documents.py",
)

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
        if document is DIAGNOSIS:
            for one in (SUMS, COMPARISON, POINTS):
                out += section(root, one)
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
        # `mbit_s` ends with `_s` and is no time.
        name = f"_{field.name}" if "_" in field.name else field.name
        of_name = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), None)
        return of_name or {"f64": "number", "Estimate": "estimate"}.get(kind, "count")
    return _WORDS.get(kind, "table")
