"""Keys of a scenario: their values according to the schema, and dotted paths to them.

Builders, ``Scenario.set``, ``--set`` and grids check values here.
"""
