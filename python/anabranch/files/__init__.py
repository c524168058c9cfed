"""Reading files that options and scenarios name, and writing files and directories atomically.

Also names of temporary files, captures of a run, stored JSON, and the files of the package.
"""
