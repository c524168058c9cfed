"""What a scenario may say: keys, their values as the schema has them, and dotted paths to them.

Builders, ``Scenario.set``, ``--set`` and grids check here what they are given.
"""
