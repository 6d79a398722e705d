"""Configuration files of hosts: one module a dialect, one neutral record out (`record`)."""
