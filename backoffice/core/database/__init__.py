"""The two roles of a PostgreSQL database: one owns and migrates, one runs."""
