"""The two roles of a PostgreSQL database, which writes each table allows, and queries that are composed once."""
