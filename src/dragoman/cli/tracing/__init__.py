"""The verbs of `dragoman trace`, a module each, and how calls look."""
