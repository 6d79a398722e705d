"""The command line: `main` finds the command, `parsers` reads its words, one module each does the work."""
