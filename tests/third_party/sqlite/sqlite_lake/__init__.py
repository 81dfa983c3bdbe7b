"""A lake format of someone else: tables of SQLite."""
