"""The log of one partition: append, read, high watermark, truncation, leader epochs, retention."""
