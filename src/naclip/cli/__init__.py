"""The command line: one file a command. Commands parse, call and print; they never compute."""
