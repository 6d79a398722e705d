"""The official conformance suite, run against our server and our client."""
