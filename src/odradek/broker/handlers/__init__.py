"""One file per API, named after it and imported at its first request (`dispatch.load_handler`)."""
