"""Training: populations of machines, the paper's techniques, stages, and runs that resume."""
