"""The SQL functions that the driver has in place of a framework's, compared with those."""
