"""Commands of the blog, by the names of their modules."""
