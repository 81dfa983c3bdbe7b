"""A read-only page about the service. Needs the extra ``server``."""
