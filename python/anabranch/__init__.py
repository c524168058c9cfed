"""Anabranch: TCP on paths that reorder, lose, delay or split packets, or change their capacity.

A scenario is a file or is built from code. It does not change: `set` and the builders return another one.

    >>> from anabranch import Scenario
    >>> base = Scenario.from_file("reordering.toml").set("link.bottleneck.forward.queue.reorder.interval", 10)
    >>> one = base.set("flow.main.cc", "reno").run(seed=3)
    >>> other = base.set("flow.main.cc", "cubic-plus").run(seed=3, samples_ms=10)
    >>> one.digest == other.digest
    False
    >>> other.table("samples").columns[:4]
    ['time_s', 'flow', 'cwnd_packets', 'ssthresh_packets']

A run is a function of scenario and seed: equal runs have equal digests.

    >>> base.run(seed=3).digest == base.run(seed=3).digest
    True
"""

# Type checkers treat this name as true regardless of its origin. The command sets its signal
# handlers right after this module: importing `typing` would add time in which Ctrl-C shows a
# traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from anabranch import builders
    from anabranch._engine import ScenarioError
    from anabranch.control import CongestionControl
    from anabranch.diagnosis.diagnosis import Diagnosis, diagnose
    from anabranch.errors import NotRecordedError, UserError
    from anabranch.keys.component import Value
    from anabranch.keys.schema import BadValueError
    from anabranch.multipoint.compare import diagnose_points
    from anabranch.result.result import RunResult
    from anabranch.scenario import Scenario
    from anabranch.study import Study
    from anabranch.sweep.sweep import SweepResult

    __version__: str

__all__ = [
    "BadValueError",
    "CongestionControl",
    "Diagnosis",
    "NotRecordedError",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Study",
    "SweepResult",
    "UserError",
    "Value",
    "__version__",
    "builders",
    "diagnose",
    "diagnose_points",
]

_HOMES = {
    "BadValueError": "anabranch.keys.schema",
    "CongestionControl": "anabranch.control",
    "Diagnosis": "anabranch.diagnosis.diagnosis",
    "NotRecordedError": "anabranch.errors",
    "RunResult": "anabranch.result.result",
    "Scenario": "anabranch.scenario",
    "ScenarioError": "anabranch._engine",
    "Study": "anabranch.study",
    "SweepResult": "anabranch.sweep.sweep",
    "UserError": "anabranch.errors",
    "diagnose": "anabranch.diagnosis.diagnosis",
    "diagnose_points": "anabranch.multipoint.compare",
    "Value": "anabranch.keys.component",
}


class NoAttributeError(AttributeError):
    """A module has no such name; the text of the error names the nearest one.

    ``from anabranch import scenario`` looks up a name before it imports the module, so the nearest
    name is computed only when the message is read.
    """

    def __init__(self, module: str, name: str, valid: "list[str]") -> None:
        super().__init__(f"module {module!r} has no attribute {name!r}")
        self.name = name
        self.valid = valid

    def __str__(self) -> str:
        from anabranch.errors import nearest

        close = nearest(str(self.name), self.valid)
        told = super().__str__()
        return f"{told}; {close}" if close.startswith("did you mean") else told


def __getattr__(name: str) -> "Any":
    """Import a public name on its first use, so that the command line imports no unused modules."""
    import importlib

    if name == "__version__":
        engine = importlib.import_module("anabranch._engine")
        return engine.version()
    if name == "builders":
        return importlib.import_module("anabranch.builders")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise NoAttributeError("anabranch", name, __all__)


def __dir__() -> "list[str]":
    """Every public name, imported or not."""
    return sorted({*globals(), *__all__})
