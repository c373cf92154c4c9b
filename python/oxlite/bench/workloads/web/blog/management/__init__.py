"""Commands of the blog."""
