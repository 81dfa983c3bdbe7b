"""The pytest plugin of the suite. Loaded in every pytest run of its users: it imports nothing heavy."""
