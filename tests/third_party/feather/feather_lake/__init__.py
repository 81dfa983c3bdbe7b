"""A lake format of someone else: Feather files."""
