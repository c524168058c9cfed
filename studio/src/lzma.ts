/**
 * Unpacks LZMA, which takes a fifth less than the formats that browsers unpack: the engine is half of the page.
 *
 * The format is that of `.lzma` files (xz's FORMAT_ALONE): 13 octets of header, then a range-coded stream of bits whose
 * probabilities adapt. A match repeats earlier octets of the output at a distance.
 */

const PROBABILITY_BITS = 11;
const HALF = 1 << (PROBABILITY_BITS - 1);
const ADAPTATION = 5;
const SMALLEST_RANGE = 2 ** 24;

const STATES = 12;
const POSITION_STATES = 16;
const LENGTH_STATES = 4;
const FIRST_CODED_SLOT = 4;
const FIRST_DIRECT_SLOT = 14;
const ALIGN_BITS = 4;
const SHORTEST = 2;

/** Bits of the input, by the range coder. */
class Reader {
  private range = 0xffffffff;
  private code = 0;

  constructor(
    private readonly octets: Uint8Array,
    private at: number,
  ) {
    // The first octet is 0.
    for (let i = 0; i < 5; i++) this.code = ((this.code << 8) | this.octets[this.at++]) >>> 0;
  }

  /** A bit with the probability at `i`, which adapts. */
  bit(probabilities: Uint16Array, i: number): number {
    const probability = probabilities[i];
    const bound = (this.range >>> PROBABILITY_BITS) * probability;
    let found: number;
    if (this.code < bound) {
      this.range = bound;
      probabilities[i] = probability + (((1 << PROBABILITY_BITS) - probability) >> ADAPTATION);
      found = 0;
    } else {
      this.range -= bound;
      this.code -= bound;
      probabilities[i] = probability - (probability >> ADAPTATION);
      found = 1;
    }
    if (this.range < SMALLEST_RANGE) {
      this.range = (this.range << 8) >>> 0;
      this.code = ((this.code << 8) | this.octets[this.at++]) >>> 0;
    }
    return found;
  }

  /** Bits that are as often 0 as 1, the highest first. */
  direct(count: number): number {
    let found = 0;
    for (let i = 0; i < count; i++) {
      this.range >>>= 1;
      const isOne = this.code >= this.range;
      if (isOne) this.code -= this.range;
      found = (found << 1) | (isOne ? 1 : 0);
      if (this.range < SMALLEST_RANGE) {
        this.range = (this.range << 8) >>> 0;
        this.code = ((this.code << 8) | this.octets[this.at++]) >>> 0;
      }
    }
    return found >>> 0;
  }

  /** A number of `count` bits, the highest first; each bit's probability depends on the bits before it. */
  tree(probabilities: Uint16Array, base: number, count: number): number {
    let node = 1;
    for (let i = 0; i < count; i++) node = (node << 1) | this.bit(probabilities, base + node);
    return node - (1 << count);
  }

  /** The same with the lowest bit first. */
  reversed(probabilities: Uint16Array, base: number, count: number): number {
    let node = 1;
    let found = 0;
    for (let i = 0; i < count; i++) {
      const bit = this.bit(probabilities, base + node);
      node = (node << 1) | bit;
      found |= bit << i;
    }
    return found;
  }
}

const even = (count: number): Uint16Array => new Uint16Array(count).fill(HALF);

/** Lengths of matches: short, middle and long ones have separate probabilities. */
class Lengths {
  private readonly choice = even(2);
  private readonly short = even(POSITION_STATES << 3);
  private readonly middle = even(POSITION_STATES << 3);
  private readonly long = even(256);

  read(reader: Reader, position: number): number {
    if (!reader.bit(this.choice, 0)) return reader.tree(this.short, position << 3, 3);
    if (!reader.bit(this.choice, 1)) return 8 + reader.tree(this.middle, position << 3, 3);
    return 16 + reader.tree(this.long, 0, 8);
  }
}

/** The content of a `.lzma` file whose header has its length. */
export function unpacked(packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = new DataView(packed.buffer, packed.byteOffset, 13);
  const properties = header.getUint8(0);
  const literalBits = properties % 9;
  const literalPositions = (1 << (Math.floor(properties / 9) % 5)) - 1;
  const positions = (1 << Math.floor(properties / 45)) - 1;
  const made = new Uint8Array(header.getUint32(5, true));

  const reader = new Reader(packed, 13);
  const literals = even(0x300 * (literalPositions + 1) * (1 << literalBits));
  const isMatch = even(STATES * POSITION_STATES);
  const isRepeated = even(STATES);
  const isOther = even(STATES);
  const isLong = even(STATES * POSITION_STATES);
  const isThird = even(STATES);
  const isFourth = even(STATES);
  const slots = even(LENGTH_STATES << 6);
  const distances = even(128);
  const align = even(1 << ALIGN_BITS);
  const lengths = new Lengths();
  const repeatedLengths = new Lengths();

  let state = 0;
  let [first, second, third, fourth] = [0, 0, 0, 0];
  let at = 0;
  while (at < made.length) {
    const position = at & positions;
    if (!reader.bit(isMatch, state * POSITION_STATES + position)) {
      const before = at ? made[at - 1] : 0;
      const base = 0x300 * (((at & literalPositions) << literalBits) + (before >> (8 - literalBits)));
      let node = 1;
      if (state >= 7) {
        // After a match the octet differs from the one at its distance: that octet's bits are part of the context.
        let matched = made[at - first - 1];
        do {
          const bit = (matched >> 7) & 1;
          matched <<= 1;
          const found = reader.bit(literals, base + ((1 + bit) << 8) + node);
          node = (node << 1) | found;
          if (found !== bit) break;
        } while (node < 0x100);
      }
      while (node < 0x100) node = (node << 1) | reader.bit(literals, base + node);
      made[at++] = node;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let length: number;
    if (reader.bit(isRepeated, state)) {
      if (!reader.bit(isOther, state)) {
        if (!reader.bit(isLong, state * POSITION_STATES + position)) {
          state = state < 7 ? 9 : 11;
          made[at] = made[at - first - 1];
          at++;
          continue;
        }
      } else if (!reader.bit(isThird, state)) {
        [first, second] = [second, first];
      } else if (!reader.bit(isFourth, state)) {
        [first, second, third] = [third, first, second];
      } else {
        [first, second, third, fourth] = [fourth, first, second, third];
      }
      length = repeatedLengths.read(reader, position);
      state = state < 7 ? 8 : 11;
    } else {
      [second, third, fourth] = [first, second, third];
      length = lengths.read(reader, position);
      state = state < 7 ? 7 : 10;
      const slot = reader.tree(slots, Math.min(length, LENGTH_STATES - 1) << 6, 6);
      first = slot;
      if (slot >= FIRST_CODED_SLOT) {
        const bits = (slot >> 1) - 1;
        first = ((2 | (slot & 1)) << bits) >>> 0;
        if (slot < FIRST_DIRECT_SLOT) first += reader.reversed(distances, first - slot, bits);
        else {
          first += reader.direct(bits - ALIGN_BITS) * 2 ** ALIGN_BITS;
          first += reader.reversed(align, 0, ALIGN_BITS);
        }
      }
    }
    if (first >= at) throw new Error("the engine's data is damaged");
    const end = Math.min(at + length + SHORTEST, made.length);
    for (const distance = first + 1; at < end; at++) made[at] = made[at - distance];
  }
  return made;
}
