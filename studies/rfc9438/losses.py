"""Write the lists of lost packets: `python losses.py`. Every 10^N-th packet is lost, as in RFC 9438 §5.1.

The first loss of a list is at packet 200 at the latest. It ends slow start, which would otherwise fill the path with
hundreds of thousands of packets.
"""

from pathlib import Path

LINES = {2: 1500, 3: 1000, 4: 500, 5: 200, 6: 60}
"""Exponents, and losses of a list: more than any run needs."""
FIRST = 200

for exponent, count in LINES.items():
    period = 10**exponent
    numbers = sorted({min(FIRST, period), *(period * number for number in range(1, count + 1))})
    text = "".join(f"{number}\n" for number in numbers)
    Path(__file__).with_name(f"every-1e{exponent}.txt").write_text(text, encoding="utf-8")
