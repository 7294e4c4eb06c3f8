"""On the board: load a library, run it isolated, time it, stream every sample."""

__version__ = "0.1.0"
