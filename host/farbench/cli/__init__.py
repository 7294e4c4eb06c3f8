"""The command line: one file a command, one door for errors and exit statuses."""
