"""What models' APIs call tools, calls and results: one module an API, each a pure conversion."""
