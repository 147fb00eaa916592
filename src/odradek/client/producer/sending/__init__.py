"""The sender: sends batches to brokers, and keeps their last failures."""
