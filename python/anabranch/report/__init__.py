"""Reports: one self-contained HTML file per run or study, tables and static figures beside it."""
