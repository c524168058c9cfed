"""Text: writing and reading names, lines and TOML, and names of arguments in messages.

These modules do not depend on scenarios or results.
"""
