"""The house rules of this code base, checked on its files; see `__main__`."""
