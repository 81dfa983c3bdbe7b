"""A lake format of someone else: Vortex files."""
