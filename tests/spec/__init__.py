"""The specification as an oracle: official schemas and examples, and tests of the model against them."""
