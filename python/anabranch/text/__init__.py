"""Text: writing and reading names, lines and TOML, and names of arguments in messages.

Nothing here knows scenarios or results.
"""
