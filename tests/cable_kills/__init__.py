"""Those who send to a group and those who are in it are killed; nobody else loses a message."""
