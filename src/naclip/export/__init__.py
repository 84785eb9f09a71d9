"""Results as the files and objects that other tools read."""
