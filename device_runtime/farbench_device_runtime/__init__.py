"""On the board: load a library, run it isolated, time it, stream every sample."""
