"""`python -m pequod`: the command line."""

from pequod.cli.app import main

main()
