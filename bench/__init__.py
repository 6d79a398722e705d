"""Side-by-side measures: `python -m bench`, which `make bench` runs."""
