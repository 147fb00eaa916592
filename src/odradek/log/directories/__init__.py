"""The log directories of a broker: placement, checkpoints, creation, deletion, moves."""
