"""`manage.py setup`: from an empty server to two administrators who can sign in."""
