"""The runtime of coordinators: replayed state over an internal topic; responses are sent after commit."""
