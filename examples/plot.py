"""A sweep as a chart: goodput over the link's rate, a colour for each congestion control, a panel for each delay.

python examples/plot.py writes goodput.png and goodput.csv. Bars are 95 % intervals over the seeds.
"""

from anabranch import Scenario
from anabranch.builders import impair, queue

scenario = (
    Scenario("One flow with random loss", duration="10 s")
    .link(
        "path",
        between=("S", "R"),
        queue=queue.drop_tail(limit="1 bdp"),
        impair=[impair.bernoulli_loss(rate=0.001)],
        rate="10 Mbit/s",
        delay="10 ms",
    )
    .flow("main", source="S", target="R")
)
swept = scenario.sweep(
    {
        "link.path.rate": ["2 Mbit/s", "10 Mbit/s", "50 Mbit/s"],
        "link.path.delay": ["5 ms", "25 ms"],
        "flow.main.cc": ["reno", "cubic", "bbr"],
    },
    repeat=5,
)
swept.table(["goodput", "rtt"]).write_csv("goodput.csv")
swept.plot(x="rate", y="goodput", color="cc", col="delay").savefig("goodput.png")
