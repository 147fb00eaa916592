"""What a checkpoint and a sink directory belong to, and whether a run may use them again."""
