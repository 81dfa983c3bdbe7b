"""The conformance suite of laketier: what every lake format has to show."""
