"""What clients did to a cluster and what they were answered, recorded, and the rules that it must keep."""
