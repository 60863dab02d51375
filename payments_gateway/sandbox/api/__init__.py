"""The simulated provider's HTTP API, one module per resource: parse the request, change or read the books, respond."""
