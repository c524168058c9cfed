"""Reading the files that options and scenarios name, and writing files and directories whole or not at all.

Names of temporary files, captures of a run, stored JSON, and the files of the package are here, too.
"""
