"""Many servers that break at random, one client of them all, and a count of what became of every call."""
