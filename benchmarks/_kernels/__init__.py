"""The groups of figures of benchmarks/kernels.py, one file each."""
