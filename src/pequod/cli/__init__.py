"""The command line: `app.py` and one file for each command.

The only package that imports typer and rich. Commands hold no logic of their own: they turn
arguments into calls and results into text. Every failure that a person can mend ends as one
sentence, a next step and exit code 1.
"""
