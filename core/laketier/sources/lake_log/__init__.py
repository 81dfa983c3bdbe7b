"""Lake tables as logs."""
