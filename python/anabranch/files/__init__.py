"""Files: reading what an option or a scenario names, and writing files and directories whole or not at all.

Names of temporary files, captures of a run, stored JSON, and what ships with the package are here, too.
"""
