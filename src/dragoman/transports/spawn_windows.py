"""Job Objects: how a process and all that it starts end together on Windows.

Written to the documentation of the Windows API; not run on the machines that this package is tested on.
"""

from __future__ import annotations

import sys
from typing import Final

_EXTENDED_LIMITS: Final = 9  # JobObjectExtendedLimitInformation
_KILL_ON_CLOSE: Final = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
            ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("BasicLimitInformation", _BasicLimits),
            ("IoInfo", ctypes.c_ulonglong * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    _api = ctypes.WinDLL("kernel32", use_last_error=True)
    _api.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
    _api.CreateJobObjectW.restype = wintypes.HANDLE
    _api.SetInformationJobObject.argtypes = (
        wintypes.HANDLE,
        ctypes.c_int,
        ctypes.c_void_p,
        wintypes.DWORD,
    )
    _api.SetInformationJobObject.restype = wintypes.BOOL
    _api.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
    _api.AssignProcessToJobObject.restype = wintypes.BOOL
    _api.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
    _api.TerminateJobObject.restype = wintypes.BOOL
    _api.CloseHandle.argtypes = (wintypes.HANDLE,)
    _api.CloseHandle.restype = wintypes.BOOL

    class Job:
        """A job with one process in it, and with whatever that process starts.

        The system ends all of it when the last handle of the job is closed, and so when this process is
        gone, however it went: nothing else has to watch.

        Raises:
            OSError: the system refuses the job, or the process in it.
        """

        def __init__(self, process: int) -> None:
            self._handle: int | None = _api.CreateJobObjectW(None, None)
            if not self._handle:
                raise ctypes.WinError(ctypes.get_last_error())
            limits = _ExtendedLimits()
            limits.BasicLimitInformation.LimitFlags = _KILL_ON_CLOSE
            well = _api.SetInformationJobObject(
                self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
            ) and _api.AssignProcessToJobObject(self._handle, process)
            if not well:
                error = ctypes.WinError(ctypes.get_last_error())
                self.close()
                raise error

        def end(self, status: int = 1) -> None:
            """End every process of the job at once; each has `status` as its exit status."""
            if self._handle:
                _api.TerminateJobObject(self._handle, status)

        def close(self) -> None:
            """Let go of the job, which ends what is left in it. May be called again."""
            handle, self._handle = self._handle, None
            if handle:
                _api.CloseHandle(handle)
