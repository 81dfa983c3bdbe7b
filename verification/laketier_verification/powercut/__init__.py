"""What a power cut can leave of a table on a local disk: recorded system calls, a model of a disk, and its states."""
