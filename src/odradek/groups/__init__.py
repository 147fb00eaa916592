"""Consumer groups: who belongs, who reads which partition, and how far each has come."""
