"""Loading a partition's directory: cut a torn tail, rebuild indexes, replay producer state."""
