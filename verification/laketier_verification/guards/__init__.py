"""Takes each guard of exactly-once away in turn, and shows which test notices."""
