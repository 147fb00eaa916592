"""How the active controller handles events: brokers, topics, reassignments, requests, notifications."""
