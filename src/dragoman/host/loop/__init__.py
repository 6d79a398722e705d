"""The loop between a model and a host: asking, calling, budgets, stopping and going on."""
