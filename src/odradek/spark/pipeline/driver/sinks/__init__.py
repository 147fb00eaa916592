"""Where the rows of a pipeline are written."""
