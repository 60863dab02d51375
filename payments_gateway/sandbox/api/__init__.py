"""The simulated provider's HTTP API, one module per resource: parse the request, use the books, respond."""
