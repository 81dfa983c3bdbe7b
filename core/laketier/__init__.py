"""Streams and batches of Arrow data into any lake format, exactly once, on Spark."""
