"""The values of records as columns, and the records that do not fit."""
