"""Files in a landing zone as a log: a ledger gives each file its place, once and for all drivers."""
