"""Servers: the public `Server` and `Context`, and what stands behind them."""
