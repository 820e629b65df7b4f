"""The dashboard: where operators live.

    live      one source: hears, looks, and hands out immutable messages; nothing else queries
    resource  what a table shows: one base, one small file for each in views/
    commands  the one table of what can be done: keys, `:` line, palette, footer and help come of it
    verbs     what the commands do, through the services of the Runtime

Widgets get values and post messages; `screens/main.py` passes them on. Importing this package
imports no Textual; `dashboard.app` does.
"""
