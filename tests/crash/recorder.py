"""Records what Oxlite does in this process, and lets the process say what it knows."""

import ctypes
import json
import os
from pathlib import Path

from tests.faults.injector import LIBRARY, Injector


class Recorder:
    """The recorder of this process; there may be one, of one folder."""

    def __init__(self) -> None:
        self.injector = Injector()
        self._library = library = ctypes.CDLL(str(LIBRARY))
        library.recorder_begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32]
        library.recorder_mark.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def begin(self, log: Path, folder: Path, sync_microseconds: int) -> None:
        """Records what happens in the folder from now on.

        Each sync takes so much longer, that others may write meanwhile.
        """
        arguments = os.fsencode(log), os.fsencode(folder.resolve()), sync_microseconds
        if self._library.recorder_begin(*arguments) != 0:
            raise OSError(f"cannot record {folder} in {log}")

    def mark(self, what: str, **details: object) -> None:
        """Says something, in its place between the calls."""
        text = json.dumps({"what": what, **details}).encode()
        self._library.recorder_mark(text, len(text))

    def end(self) -> None:
        """Records no more."""
        self._library.recorder_end()
