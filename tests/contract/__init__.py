"""The stricter reader: the sandbox and our client, both held against payments_gateway/openapi.yaml."""
