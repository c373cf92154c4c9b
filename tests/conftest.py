"""What holds for all tests."""

import signal

# Whoever runs the tests in the background has it ignored, and so would all processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
