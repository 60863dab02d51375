"""What stands between HTTP and the books: bodies read strictly, answers in their envelopes, credentials, refusals."""
