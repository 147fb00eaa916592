"""`odradek log`: look at, check, repair and fork log directories, without a broker."""
