"""Names that a module does not have."""

from __future__ import annotations


class NoAttributeError(AttributeError):
    """A module has no such name; as text, with the nearest one.

    ``from anabranch import scenario`` asks for a name before it imports the module: the nearest is looked for only
    when somebody reads the message.
    """

    def __init__(self, module: str, name: str, valid: list[str]) -> None:
        super().__init__(f"module {module!r} has no attribute {name!r}")
        self.name = name
        self.valid = valid

    def __str__(self) -> str:
        from anabranch.errors import nearest

        close = nearest(str(self.name), self.valid)
        told = super().__str__()
        return f"{told}; {close}" if close.startswith("did you mean") else told
