"""Faults put into real pipelines, and what became of the rows: ``python -m laketier_verification.faults``."""
