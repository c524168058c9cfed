"""Words of command lines with their positions; handles a shell's comments, quotes, continued lines and separators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.convert.content import Text
from anabranch.errors import UserError, nearest

_PIECE = re.compile(
    r"""(?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)
    | (?P<end>\n|;|&&|\|\||\||&)
    | (?P<word>(?:"(?:[^"\\]|\\.)*"|'[^']*'|\$\{[^}\n]*\}|\\[^\n]|[^\s;&|"'\\])+)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)", re.DOTALL)


@dataclass(frozen=True)
class Word:
    """A word without its quotation marks, and its offset."""

    text: str
    at: int


def commands(text: Text) -> list[list[Word]]:
    """The simple commands of a script, in order.

    Raises:
        UserError: A quotation mark is not closed.
    """
    found: list[list[Word]] = [[]]
    at, source = 0, text.text
    while at < len(source):
        if source[at] == "#" and (at == 0 or source[at - 1] in " \t\n;&|"):
            at = source.find("\n", at)
            if at < 0:
                break
        piece = _PIECE.match(source, at)
        if piece is None:
            raise text.error(at, f"{source[at]} is not closed; another was expected")
        if piece.lastgroup == "end":
            found.append([])
        elif piece.lastgroup == "word":
            found[-1].append(Word(_QUOTED.sub(_inside, piece[0]), at))
        at = piece.end()
    return [words for words in found if words]


def _inside(found: re.Match[str]) -> str:
    if found[2] is not None:
        return found[2]
    return re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL) if found[1] is not None else found[3]


class Cursor:
    """A cursor over the words of one command."""

    def __init__(self, text: Text, words: list[Word]) -> None:
        self.text = text
        self._words = words
        self._next = 0

    @property
    def is_done(self) -> bool:
        """Whether no word is left."""
        return self._next >= len(self._words)

    def peek(self) -> str | None:
        """The next word, if there is one."""
        return None if self.is_done else self._words[self._next].text

    def take(self, expected: str) -> Word:
        """The next word.

        Raises:
            UserError: There is none; the message names ``expected``.
        """
        if self.is_done:
            last = self._words[-1]
            raise self.text.error(last.at, f"nothing follows {last.text!r}; {expected} was expected")
        self._next += 1
        return self._words[self._next - 1]

    def rest(self) -> list[Word]:
        """All remaining words."""
        left = self._words[self._next :]
        self._next = len(self._words)
        return left

    def unknown(self, word: Word, what: str, valid: Iterable[str]) -> UserError:
        """The error that a word is not one of ``valid``."""
        return self.text.error(word.at, f"{word.text!r} is not {what}", nearest(word.text, valid))
