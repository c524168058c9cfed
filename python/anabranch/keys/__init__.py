"""Keys of a scenario: their values as the schema has them, and dotted paths to them.

Builders, ``Scenario.set``, ``--set`` and grids check values here.
"""
