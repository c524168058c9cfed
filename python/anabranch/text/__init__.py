"""Text: how names, lines and TOML are written and read, and what messages call things.

Nothing here knows scenarios or results.
"""
