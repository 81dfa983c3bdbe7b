"""What shows that laketier is exactly-once: faults, races, a model, random histories, power cuts, guards, wrong clocks.

Tests run slices of it, ``make`` targets the whole; the product never imports it, and no distribution carries it.
"""
