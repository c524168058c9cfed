"""A search from its options to its files: controls, budget, resumption, confirmation, report."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunFailedError, UserError, nearest
from anabranch.interrupt import whole_step
from anabranch.limits import check_jobs, check_seed
from anabranch.stress.bounds import KINDS
from anabranch.stress.genome import space
from anabranch.stress.goals import GOALS, Goal
from anabranch.stress.isolated import BudgetEndedError
from anabranch.stress.judge import Judge, Pair
from anabranch.stress.report import Told, html_report, scenario_file, tell
from anabranch.stress.scene import Control
from anabranch.stress.search import GENERATION, Search, State
from anabranch.text import shown, toml_text
from anabranch.text.spoken import argument

if TYPE_CHECKING:
    from anabranch.control import CongestionControl
    from anabranch.stress.store import Store
    from anabranch.sweep.maker import Engine

DEFAULT_BUDGET_S = 60.0
MOST_BUDGET_S = 7 * 86_400.0
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_SAVE_S = 5.0
"""Least time between two saves of the state."""


@dataclass(frozen=True)
class Plan:
    """The options of a search.

    Attributes:
        control: The control under test: its name, or a table in TOML.
        goals: Names of goals; empty: all.
        against: The reference control; default: Reno, and CUBIC for Reno.
        events: Kinds of events; empty: all.
        stack: The stack profile of all TCP flows.
        budget_s: Time of this call; ``None``: no limit.
        runs: Number of candidates in all calls; ``None``: no limit.
        seed: The seed of all choices.
        jobs: Number of threads.
        out: The directory of the state and of the results.
        ray: The address of a Ray cluster.
        kernel: Confirm finds in a kernel: ``""`` for the newest, or the start of its release; ``None``: do not.
        classes: Controls in Python.
        first: Stop at the first find.
        command: The command, as typed.
    """

    control: str
    goals: tuple[str, ...] = ()
    against: str | None = None
    events: tuple[str, ...] = ()
    stack: str = "linux"
    budget_s: float | None = None
    runs: int | None = None
    seed: int = 1
    jobs: int | None = None
    out: Path | None = None
    ray: str | None = None
    kernel: str | None = None
    classes: tuple[type[CongestionControl], ...] = ()
    first: bool = False
    command: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of a search.

    Attributes:
        pair: The controls.
        state: The state at its end.
        tellings: The finds with their sentences.
        elapsed_s: Time of this call.
    """

    pair: Pair
    state: State
    tellings: list[Told]
    elapsed_s: float

    def to_json(self) -> dict[str, Any]:
        """The result as a document."""
        from anabranch.stress.store import find_json

        return {
            "format": 1,
            "control": self.pair.tested.label,
            "against": self.pair.reference.label,
            "evaluations": self.state.evaluations,
            "finds": [
                {
                    "name": told.name,
                    "sentence": told.sentence,
                    **find_json(told.find),
                    "confirmation": told.confirmation.to_json() if told.confirmation else None,
                }
                for told in self.tellings
            ],
        }


def budget(given: str) -> float:
    """A time such as ``30min``, in seconds.

    Raises:
        UserError: It is no time, or out of range.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", given)
    told = argument("budget", shown.plain(given))
    if found is None:
        raise UserError(f"{told}: a time with its unit was expected", hint="30min, 90s or 2h")
    seconds = float(found[1]) * _UNITS[found[2]]
    if not 0 < seconds <= MOST_BUDGET_S:
        raise UserError(f"{told}: a time above 0 and up to 168h was expected")
    return seconds


def read_control(given: str, name: str, stack: str, classes: Sequence[type[CongestionControl]] = ()) -> Control:
    """A control by its name, ``module:Class``, ``FILE.bpf.c``, or a table in TOML: ``{ kind = "cubic", beta = 0.5 }``.

    Args:
        given: The text.
        name: The argument that has it.
        stack: The stack profile.
        classes: Controls in Python.

    Raises:
        UserError: There is no such control, or a parameter is wrong.
    """
    from anabranch._engine import ScenarioError
    from anabranch.evaluate.subject import BPF_SUFFIX, find
    from anabranch.keys.registry import aliases, engine_registry
    from anabranch.scenario import Scenario

    value: Any = given
    if given.lstrip().startswith("{"):
        value = toml_text.parse_value(given)
    elif ":" in given or given.endswith(BPF_SUFFIX):
        subject = find(given)
        used = tuple((one.name, one) for one in subject.controls)
        mark = subject.mark if subject.controls else _mark(subject.value)
        source = given if subject.controls else ""
        return Control(subject.name, toml_text.write_value(subject.value), used, stack, mark, source)
    kind = value.get("kind") if isinstance(value, dict) else value
    own = {one.name: one for one in classes}
    items = [item for item in engine_registry() if item["kind"] == "cc"]
    known = {*own, *(item["name"] for item in items), *(alias for item in items for alias in aliases(item))}
    if kind not in known:
        told = argument(name, shown.plain(given)) if name != "control" else f'"{shown.plain(given)}"'
        raise UserError(f"{told}: there is no such congestion control", hint=nearest(str(kind), known))
    used = ((str(kind), own[str(kind)]),) if kind in own else ()
    label = str(kind) if not isinstance(value, dict) or len(value) == 1 else _label(value)
    if isinstance(value, dict) and isinstance(value.get("file"), str):
        # The scenarios of finds are in another folder.
        value = {**value, "file": str(Path(value["file"]).resolve())}
    control = Control(label, toml_text.write_value(value), used, stack, _mark(value))
    base = (
        'duration = "1 s"\nlink.a = { between = ["S", "R"], rate = "1 Mbit/s", delay = "5 ms" }\n'
        f'[flow.main]\nfrom = "S"\nto = "R"\nstack = {toml_text.write_value(stack)}\ncc = {control.value}\n'
    )
    try:
        Scenario.from_text(base, file="stress").with_controls(*(one for _, one in used)).resolve()
    except ScenarioError as error:
        raise UserError(_told(error, given, stack)) from None
    return control


def _mark(value: Any) -> str:
    """A hash of the file that a control is defined by; empty without one."""
    from anabranch.evaluate.includes import hash_of_program

    if not isinstance(value, dict) or not isinstance(value.get("file"), str):
        return ""
    try:
        return hash_of_program(Path(value["file"]))
    except OSError as error:
        raise UserError(f"{value['file']}: {error.strerror or error}") from None


def _told(error: Any, given: str, stack: str) -> str:
    lines = str(error).splitlines()
    hints = [line.strip() for line in lines[1:] if "did you mean" in line or "expected" in line]
    return "\n  ".join([f"{given} with the stack {stack}: {error.message}", *hints[:1]])


def _label(table: dict[str, Any]) -> str:
    parameters = ", ".join(f"{key} {value}" for key, value in table.items() if key != "kind")
    return f"{table['kind']} ({parameters})"


def goals_of(names: Sequence[str]) -> list[Goal]:
    """Goals by name; all for none.

    Raises:
        UserError: There is no such goal.
    """
    for name in names:
        if name not in GOALS:
            raise UserError(f"{argument('goal', shown.plain(name))}: there is no such goal", hint=nearest(name, GOALS))
    return [GOALS[name] for name in dict.fromkeys(names)] or list(GOALS.values())


def _events(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in KINDS:
            raise UserError(
                f"{argument('events', shown.plain(name))}: there is no such kind of event", hint=nearest(name, KINDS)
            )
    return tuple(dict.fromkeys(names))


def _possible(goals: Sequence[Goal], kinds: Sequence[str]) -> list[Goal]:
    """The goals for which one of the kinds of events can be used; ``kinds`` is empty for all.

    Raises:
        UserError: There is none.
    """
    used = [goal for goal in goals if space(goal.companies, kinds or list(KINDS), (), passes=goal.passes).kinds]
    if not used:
        raise UserError(
            f"{argument('events', ','.join(kinds))}: these last until the end, and the goal {goals[0].name} needs "
            "events that end",
            hint="leave the option out",
        )
    return used


def stress(
    plan: Plan,
    progress: Callable[[State, float], None] | None = None,
    remark: Callable[[str], None] | None = None,
) -> Outcome:
    """Search, confirm, and write.

    Args:
        plan: The options.
        progress: Called after each generation with the state, and the share of the budget that is used.
        remark: Receives sentences about the work.

    Raises:
        UserError: An option is wrong.
        RunFailedError: A control in Python failed, or the budget ended before any candidate did.
        KeyboardInterrupt: A signal arrived; the state and the finds have been written.
    """
    kinds = _events(plan.events)
    goals = _possible(goals_of(plan.goals), kinds)
    check_jobs(plan.jobs)
    check_seed(plan.seed)
    if plan.runs is not None and plan.runs < 1:
        raise UserError(f"{argument('runs', plan.runs)}: at least 1 was expected")
    tested = read_control(plan.control, "control", plan.stack, plan.classes)
    against = plan.against or ("cubic" if tested.label in ("reno", "new-reno") else "reno")
    reference = read_control(against, "against", plan.stack, plan.classes)
    pair = Pair(tested, reference)
    if plan.kernel is not None:
        from anabranch.kernel.images import chosen

        chosen(plan.kernel or None)
    store = _store(plan, pair, goals)
    state = store.load() if store is not None else None
    if state is not None and remark is not None:
        remark(f"goes on after {state.evaluations:,} candidates and {_count(len(state.finds), 'find')}")
    began = time.monotonic()
    engine = _engine(plan, pair, began)
    search = Search(Judge(pair, plan.jobs, engine), goals, plan.seed, state, kinds)
    try:
        _run(search, plan, store, began, progress)
        state = search.state
    except BudgetEndedError:
        state = _at_the_end(search, plan, store, remark)
    finally:
        if engine is not None:
            engine.close()
    confirmations = _confirm(state, pair, plan, remark)
    if store is not None:
        _write(state, pair, store, plan.command, confirmations)
    tellings = tell(state.finds, pair, confirmations)
    return Outcome(pair, state, tellings, time.monotonic() - began)


def _at_the_end(search: Search, plan: Plan, store: Store | None, remark: Callable[[str], None] | None) -> State:
    """The result of a search whose budget ended within a generation: its finds, and the candidates that were run.

    Raises:
        RunFailedError: No candidate was run.
    """
    pair, complete = search.judge.pair, search.complete
    if store is not None and complete is not None and complete.generation:
        # The next call makes the generation again.
        _save(complete, pair, store)
    if not search.judge.evaluations:
        raise RunFailedError(
            f"no {GENERATION} candidates of {pair.tested.label} ended within the budget of {_limit_s(plan):g} s: "
            "give a longer --budget, or find out why a run takes so long"
        )
    if remark is not None:
        remark(f"the budget ended within a generation of {GENERATION} candidates; a longer --budget completes it")
    return replace(complete or State(), finds=list(search.state.finds), evaluations=search.judge.evaluations)


def _limit_s(plan: Plan) -> float | None:
    return plan.budget_s if plan.budget_s is not None or plan.runs is not None else DEFAULT_BUDGET_S


def _run(
    search: Search,
    plan: Plan,
    store: Store | None,
    began: float,
    progress: Callable[[State, float], None] | None,
) -> None:
    pair = search.judge.pair
    limit = _limit_s(plan)
    saved = began

    def go_on(state: State) -> bool:
        nonlocal saved
        now = time.monotonic()
        used = 0.0 if limit is None else (now - began) / limit
        if plan.runs is not None:
            used = max(used, state.evaluations / plan.runs)
        if progress is not None:
            progress(state, min(1.0, used))
        if store is not None and state.generation and (used >= 1 or plan.first or now - saved >= _SAVE_S):
            _save(state, pair, store)
            saved = now
        return used < 1 and not (plan.first and state.finds)

    try:
        search.run(go_on)
    except KeyboardInterrupt:
        # A generation that a signal interrupts is made again by the next call, from the state before it.
        if store is not None and search.complete is not None and search.complete.generation:
            with whole_step():
                _save(search.complete, pair, store)
        raise


def _store(plan: Plan, pair: Pair, goals: Sequence[Goal]) -> Store | None:
    if plan.out is None:
        return None
    from anabranch.stress.store import Store
    from anabranch.sweep.build import fingerprint

    if any(control.classes and not control.mark for control in (pair.tested, pair.reference)):
        raise UserError(
            f"{argument('out')}: a search with a congestion control in Python is not kept",
            hint="leave it out: a change of the control's code would not be detected",
        )
    settings = {
        "control": f"{pair.tested.value} {pair.tested.mark}",
        "reference": f"{pair.reference.value} {pair.reference.mark}",
        "goals": [goal.name for goal in goals],
        "events": list(plan.events),
        "stack": plan.stack,
        "seed": plan.seed,
        "build": f"{fingerprint()} {_sources()}",
    }
    return Store(plan.out, settings)


def _sources() -> str:
    """A hash of the modules of the search: a change of a bound or of a goal makes another search."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _engine(plan: Plan, pair: Pair, began: float) -> Engine | None:
    """The place of the runs, if it is not this process."""
    if plan.ray is not None:
        from anabranch.sweep.cluster import Ray

        return Ray(plan.ray, plan.jobs)
    sources = [control.source for control in (pair.tested, pair.reference) if control.source]
    # A class of a caller in Python may have no source.
    if not sources or any(control.classes and not control.source for control in (pair.tested, pair.reference)):
        return None
    from anabranch.stress.isolated import Isolated

    limit_s = _limit_s(plan)
    return Isolated(sources, plan.jobs, None if limit_s is None else began + limit_s)


def _confirm(state: State, pair: Pair, plan: Plan, remark: Callable[[str], None] | None) -> list[Any]:
    if plan.kernel is None:
        return []
    from anabranch.stress.confirm import confirm

    confirmations = []
    for number, find in enumerate(state.finds, 1):
        if remark is not None:
            remark(f"runs find {number} of {len(state.finds)} in a kernel")
        confirmations.append(confirm(find.goal, find.genome, pair, plan.kernel or None))
    return confirmations


def _save(state: State, pair: Pair, store: Store) -> None:
    for told in tell(state.finds, pair):
        store.write(f"{told.name}.toml", scenario_file(told, pair))
    store.save(state)


def _write(state: State, pair: Pair, store: Store, command: str, confirmations: Sequence[Any]) -> None:
    tellings = tell(state.finds, pair, confirmations)
    store.write("report.html", html_report(tellings, pair, command, state.evaluations))
    store.write("finds.json", json.dumps(Outcome(pair, state, tellings, 0.0).to_json(), indent=1) + "\n")
    store.finish()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
