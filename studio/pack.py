"""Pack standard input for the studio's page (studio/src/lzma.ts): LZMA with the length in the header."""

import lzma
import struct
import sys

# The engine's code has no alignment, so that positions are no context.
FILTER = {
    "id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0, "dict_size": 1 << 23,
}  # fmt: skip

content = sys.stdin.buffer.read()
packed = lzma.compress(content, format=lzma.FORMAT_ALONE, filters=[FILTER])
# Octets 5 to 12 are the length, which Python leaves open.
sys.stdout.buffer.write(packed[:5] + struct.pack("<Q", len(content)) + packed[13:])
