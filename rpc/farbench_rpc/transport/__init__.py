"""Carry frames between two machines, or between two parts of one process, and nothing else."""
