"""Who serves a model, and how it is asked, whatever its API: over HTTP, or by a client that is handed in."""
