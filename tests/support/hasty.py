"""With `-p hasty`, a run of a suite waits for no answer for long: nobody has the patience of minutes in a test."""

from laketier_conformance import patience

patience.WAIT_SECONDS = patience.NEXT_SECONDS = 5.0
patience.END_SECONDS = 2.0
patience.HARNESS_SECONDS = 10.0
