"""What the kernels for CPU and GPU share."""
