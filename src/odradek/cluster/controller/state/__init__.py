"""What the controller knows and decides: state tables, elections, reassignments."""
