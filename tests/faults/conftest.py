"""Imports kafka-python, which warns when it is imported: to the tests a warning is an error."""

import warnings

with warnings.catch_warnings(action="ignore"):
    import kafka  # noqa: F401
