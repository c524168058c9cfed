"""Write the lists of lost packets: `python losses.py`. Every 10^N-th packet is lost, as in RFC 9438 §5.1.

The first loss of a list is at packet 200 at the latest. It ends slow start, which would otherwise fill the path with
hundreds of thousands of packets. The lists ``steady-`` begin with the loss at which slow start has reached the model's
largest window with C = 0.4 and a round-trip time of 0.1 s: 4 / 3.7 of its average window (RFC 9438, appendix). The
window is then the initial window of 10 packets and one packet for every one before the lost one.
"""

from pathlib import Path

LINES = {2: 1500, 3: 1000, 4: 500, 5: 200, 6: 60}
"""Exponents, and losses of a list: more than any run needs."""
FIRST = 200
AVERAGE = {4: 187, 5: 1054, 6: 5926}
"""Average windows of RFC 9438, table 1, column C = 0.4."""
INITIAL = 10


def write(name: str, first: int, period: int, count: int) -> None:
    """Write the list ``name``: ``first``, then ``count`` multiples of ``period``."""
    numbers = sorted({min(first, period), *(period * number for number in range(1, count + 1))})
    text = "".join(f"{number}\n" for number in numbers)
    Path(__file__).with_name(name).write_text(text, encoding="utf-8")


for exponent, count in LINES.items():
    write(f"every-1e{exponent}.txt", FIRST, 10**exponent, count)
for exponent, average in AVERAGE.items():
    first = round(average * 4 / 3.7) - INITIAL + 1
    write(f"steady-1e{exponent}.txt", first, 10**exponent, LINES[exponent])
