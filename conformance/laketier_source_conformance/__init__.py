"""The conformance suite of sources: what every `LogSource` has to show before its offsets may become a watermark."""
