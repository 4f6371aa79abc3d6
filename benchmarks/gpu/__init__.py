"""What a GPU brings: `python -m benchmarks.gpu`."""
