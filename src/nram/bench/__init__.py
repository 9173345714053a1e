"""Everything that `nram bench` measures. Figures are ratios within one run."""
