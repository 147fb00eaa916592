"""What a pipeline file says: one model behind Python and YAML files, checked without Spark."""
