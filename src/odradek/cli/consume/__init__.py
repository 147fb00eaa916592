"""`odradek consume`: read records and print them, with the flags of kcat and kafka-console-consumer.sh."""
