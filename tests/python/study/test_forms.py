"""The language expresses the claims of all five studies; the reordering claims are also judged."""

from __future__ import annotations

import pytest

from anabranch.study.expression import Names, compile_expression
from anabranch.study.functions import Value
from anabranch.study.series import Cell, Key, Series

REORDERING: dict[str, tuple[dict[str, str], list[str]]] = {
    "R1": (
        {"newreno_mbit_s": "throughput[plain, newreno]", "cubic_mbit_s": "throughput[plain, cubic]"},
        ["abs(newreno_mbit_s / 9.54455 - 1) <= 0.01 and abs(cubic_mbit_s / 9.54455 - 1) <= 0.01",
         "abs(newreno_mbit_s / cubic_mbit_s - 1) <= 0.001"],
    ),
    "R2": ({"lowest": "min(normalised[newreno, 4 <= ri <= 99])"}, ["0.40 <= lowest <= 0.60"]),
    "R3": ({"lowest": "min(normalised[cubic, 4 <= ri <= 99])"}, ["0.30 <= lowest <= 0.50"]),
    "R4": ({"below": "share(normalised[cubic, 4 <= ri <= 95] < normalised[newreno, 4 <= ri <= 95])"}, ["below >= 0.8"]),
    "R5": (
        {"newreno": "spearman(fast_recoveries[newreno], ri)", "cubic": "spearman(fast_recoveries[cubic], ri)",
         "fewest": "min(smaller(fast_recoveries[newreno, ri <= 95], fast_recoveries[cubic, ri <= 95]))"},
        ["newreno <= -0.7 and cubic <= -0.7", "fewest > 0"],
    ),
    "R6": (
        {"reordered": "max(reordered[ri == 100])", "recoveries": "max(fast_recoveries[ri == 100])",
         "least": "min(normalised[ri == 100])", "most": "max(normalised[ri == 100])",
         "peak_queue": "max(peak_queue[ri == 100])"},
        ["reordered == 0", "recoveries == 0", "0.99 <= least and most <= 1.01", "peak_queue <= 100"],
    ),
    "R7": (
        {"small": "min(normalised[cubic, ri <= 15])", "large": "min(normalised[cubic, 60 <= ri <= 99])"},
        ["small <= 0.9", "large <= 0.9"],
    ),
    "R8": (
        {"mean": "mean(normalised[cubic_plus, 30 <= ri <= 95])",
         "least": "min(normalised[cubic_plus, 30 <= ri <= 95])"},
        ["0.85 <= mean <= 1.0", "least >= 0.75"],
    ),
    "R9": ({"gain": "max(throughput[cubic_plus] / throughput[cubic])"}, ["gain >= 2.0"]),
    "R10": (
        {"gain": "mean(throughput[cubic_plus, 4 <= ri <= 25] / throughput[cubic, 4 <= ri <= 25])"},
        ["0.9 <= gain <= 1.15"],
    ),
    "R11": (
        {"ratio": "mean(cwnd[cubic, ri == 70, 1 <= time_s <= 3]) / mean(cwnd[cubic_plus, ri == 70, 1 <= time_s <= 3])",
         "slow_starts": "runs(state[cubic_plus, ri == 70] == 'slow-start')"},
        ["ratio < 0.6", "slow_starts >= 2"],
    ),
}  # fmt: skip

NAMES = Names(
    quantities=["throughput", "normalised", "fast_recoveries", "reordered", "peak_queue", "cwnd", "state"],
    axes=["ri", "variant", "seed", "time_s"],
    variants=["newreno", "cubic", "cubic_plus"],
    experiments=["reordering", "plain"],
)


class Published:
    """A path that behaves as published; ``spoilt`` names one exception."""

    def __init__(self, spoilt: str = "") -> None:
        self.spoilt = spoilt

    def share(self, variant: str, ri: int) -> float:
        if ri == 100:
            return 0.9 if self.spoilt == "R6" else 1.0
        if variant == "newreno":
            return {"R2": 0.7, "R4": 0.3}.get(self.spoilt, 0.5 + ri / 1000)
        if variant == "cubic" or ri < 30:
            gain = 1.3 if self.spoilt == "R10" and variant == "cubic_plus" else 1.0
            return gain * {"R3": 0.6, "R7": 0.95}.get(self.spoilt, 0.4 + ri / 1000)
        return {"R8": 0.7, "R9": 0.75}.get(self.spoilt, 0.95)

    def quantity(self, name: str, experiment: str | None) -> Series:
        intervals = [*range(4, 100, 5), 95, 100, 70]
        variants = ["newreno", "cubic", "cubic_plus"]
        if name == "cwnd":
            factor = {"cubic": 0.7 if self.spoilt == "R11" else 0.4, "cubic_plus": 1.0, "newreno": 0.5}
            samples = [(v, 70, 1, t / 10) for v in variants for t in range(100)]
            return Series(("variant", "ri", "seed", "time_s"), {k: 100 * factor[str(k[0])] for k in samples})
        if name == "state":
            words: dict[Key, Cell] = {(v, 70, 1, t / 10): "slow-start" if t < 5 or 20 < t < 25 else "open"
                     for v in variants for t in range(100)}  # fmt: skip
            return Series(("variant", "ri", "seed", "time_s"), words)
        if name == "normalised":
            both = compile_expression("throughput / throughput[plain]", NAMES).evaluate(self, {}, experiment)
            assert isinstance(both, Series)
            return both
        if experiment == "plain":
            base = {"newreno": 9.3 if self.spoilt == "R1" else 9.54455, "cubic": 9.54455, "cubic_plus": 9.54455}
            return Series(("variant", "seed"), {(v, 1): base[v] for v in variants})
        cells: dict[Key, Cell] = {}
        for v in variants:
            for ri in intervals:
                value = {
                    "throughput": 9.54455 * self.share(v, ri),
                    "fast_recoveries": 0 if ri == 100 else (ri if self.spoilt == "R5" else 200 - ri),
                    "reordered": 0 if ri == 100 else 1000 // ri,
                    "peak_queue": 99,
                }[name]
                cells[v, ri, 1] = value
        return Series(("variant", "ri", "seed"), cells)

    def axis(self, name: str, experiment: str | None) -> Series:
        return Series((name,), {(ri,): ri for ri in [*range(4, 100, 5), 95, 100, 70]})


def holds(claim: str, source: Published) -> bool:
    measures, conditions = REORDERING[claim]
    values: dict[str, Value] = {}
    for name, text in measures.items():
        names = Names(NAMES.quantities, NAMES.axes, NAMES.variants, NAMES.experiments, tuple(values))
        values[name] = compile_expression(text, names).evaluate(source, values, "reordering")
    names = Names(NAMES.quantities, NAMES.axes, NAMES.variants, NAMES.experiments, tuple(values))
    outcomes = []
    for text in conditions:
        value = compile_expression(text, names).evaluate(source, values, "reordering")
        outcomes.append(next(iter(value.cells.values())) if isinstance(value, Series) else value)
    return all(outcomes)


@pytest.mark.parametrize("claim", REORDERING)
def test_reordering_claims_hold_on_the_published_path(claim: str) -> None:
    assert holds(claim, Published())


@pytest.mark.parametrize("claim", REORDERING)
def test_reordering_claims_fail_if_their_subject_differs(claim: str) -> None:
    assert not holds(claim, Published(spoilt=claim))


LATER = Names(
    quantities=["t", "ratio", "total", "goodput", "cwnd", "members", "drops", "timeouts", "recoveries",
                "retransmission",
                "redundancy", "recovery"],
    axes=["rtt", "j1", "j2", "loss1", "loss2", "loss", "delay", "fmax", "jitter", "variant", "seed", "time_s"],
    variants=["cubic", "ctcp", "westwood", "newreno", "vegas", "taildrop", "red", "static", "dynamic", "A", "B", "sack",
              "fec", "fec+no-dup", "fec+fmax1", "fec+fmax10", "fec+fmax40"],
    experiments=["solo", "together", "off", "on", "single", "sweep"],
    measures=["best", "regained"],
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        # fairness F1‥F7
        "all(abs(goodput[solo, cubic, rtt < 100] / goodput[solo, ctcp, rtt < 100] - 1) <= 0.1)",
        "any(abs(goodput[solo, cubic, rtt >= 100] / goodput[solo, ctcp, rtt >= 100] - 1) > 0.1)",
        "max(ratio[together, taildrop, rtt <= 100]) <= 0.5",
        "share(abs(ratio[red] - 1) < abs(ratio[taildrop] - 1)) >= 0.8 and share(abs(ratio[red] - 1) > 0.2) >= 0.5",
        "all(0.75 <= ratio[static, rtt <= 32] <= 1.25)",
        "ratio[dynamic, rtt == 128] <= 0.75",
        "all(max(total[rtt < 10], over=variant) / min(total[rtt < 10], over=variant) <= 1.03)",
        "share(total[taildrop, rtt >= 10] >= max(total[rtt >= 10], over=variant)) >= 0.8",
        # link aggregation L1‥L9
        "abs(t[off, ctcp] / 793.9 - 1) <= 0.05",
        "t[off, cubic] > t[off, ctcp] and t[off, ctcp] > t[off, westwood] and t[off, newreno] > t[off, vegas]",
        "1 - t[on, ctcp] / t[off, ctcp] <= 0.03",
        "cross_correlation(cwnd[on, ctcp], members[on, ctcp], 1.0) >= 0.6",
        "last(drops[on, cubic, time_s <= 6]) / last(drops[on, cubic]) >= 0.8",
        "time_when(cwnd[on, cubic, time_s > 5] >= max(cwnd[on, cubic, time_s <= 5])) > 30",
        # multipath M1‥M7
        "share(abs(t[A] / lookup(t[A], j1=larger(j1, j2), j2=larger(j1, j2)) - 1) <= 0.15) >= 0.8",
        "slope(t[B], jitter) < slope(t[A], jitter) and spearman(t[B] / t[A], jitter) <= -0.8",
        "spearman(t[A], loss1 + loss2) ** 2 >= 0.9",
        "t[B, loss == 0.01] > t[A, loss == 0.01]",
        "any(lower95(t[B, jitter == 50] - t[B, jitter == 0]) > 0)",
        "any(lower95(t[B] - t[single]) > 0)",
        "share(t[B, jitter <= 50, loss <= 0.005] >= t[A, jitter <= 50, loss <= 0.005]) > 0.5",
        # FEC C1‥C11
        "all(lower95(t['fec+fmax10'] - t[sack]) > 0)",
        "all(abs(t['fec+no-dup'] / t[sack] - 1) <= 0.15)",
        "all(t[fec, delay >= 50] - t[sack, delay >= 50] < 0.5 * (t['fec+fmax10', delay >= 50] - t[sack, delay >= 50]))",
        "t['fec+fmax10', delay == 300] / t['fec+fmax10', delay == 50] >= 0.6",
        "max(argmax(t[sweep, fec], over=fmax)) / min(argmax(t[sweep, fec], over=fmax)) >= 4",
        "all(recoveries[sack] >= max(recoveries, over=variant)) and spearman(retransmission[sack], loss) == 1",
        "all(timeouts[fec, loss >= 0.0005] >= 2 * timeouts[sack, loss >= 0.0005])",
        "all(0.45 <= redundancy['fec+fmax1'] <= 0.5) and all(recovery['fec+fmax1'] < recovery['fec+fmax10'])",
    ],
)
def test_later_claims_can_be_written(text: str) -> None:
    compile_expression(text, LATER)
