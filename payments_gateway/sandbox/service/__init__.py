"""The operations of the specification, one module per resource: read, ask the books, answer."""
