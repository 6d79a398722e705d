"""The tests; a package so that areas can share helpers such as `tests.spec.oracle`."""
