"""What holds for all tests."""

import signal

# In a shell's background it is ignored, and so it would be by all processes that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
