"""The campaign looks for what is lost or wrong: random fits, hostile files, kills, full disks. See `__main__`."""
