"""The stricter reader: the simulated service and our client, both held against payments_gateway/openapi.yaml."""
