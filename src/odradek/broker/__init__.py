"""The broker: from a request to its handler, and everything that is put together behind it."""
