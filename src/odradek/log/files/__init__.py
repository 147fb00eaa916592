"""The files of a log: opening, appending, reading, preallocation, page cache."""
