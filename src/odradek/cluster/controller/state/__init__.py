"""The controller's state and decisions: state tables, elections, reassignments."""
