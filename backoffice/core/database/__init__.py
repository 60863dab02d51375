"""What the ORM lacks: the two roles of a PostgreSQL database and their grants, time limits, triggers of migrations,
joined texts, and queries that are composed once.
"""
