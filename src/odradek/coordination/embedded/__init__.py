"""The embedded store: znodes in a SQLite file that the broker processes of one machine share."""
