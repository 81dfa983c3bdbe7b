"""Series of operations that are drawn: each is done to a table and to a model in memory, and what a reader finds is
compared with the model. A series that fails is made shorter, and told step by step.

To add a step, add an entry to `STEPS` of `steps`; to add a look, one to `LOOKS` of `looks`.
"""
