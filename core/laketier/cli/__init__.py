"""The command line: one thin command per use; it may use every room."""
