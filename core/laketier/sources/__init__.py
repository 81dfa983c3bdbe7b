"""Where data comes from: folders of files, and any lake table."""
