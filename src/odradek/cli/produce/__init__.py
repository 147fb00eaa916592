"""`odradek produce`: send records, with the flags of kcat and kafka-console-producer.sh."""
