# SPDX-License-Identifier: Apache-2.0
"""Keeps AMX from this process and its children, so that a CPU that has it stands for one that has not.

Linux hands out the registers of tiles on request (arch_prctl, ARCH_REQ_XCOMP_PERM), and whoever is refused must do without.
A seccomp filter refuses from now on. x86-64 alone has that request; elsewhere nothing is to be done.
"""
import ctypes
import errno
import os
import platform

ARCH_PRCTL, REQUEST = 158, (0x1023, 0x1025)  # the number on x86-64; for a process, and for the guests that it runs
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # classic BPF: a word of the data, a jump, the verdict
NUMBER, ARGUMENT = 0, 16  # offsets in struct seccomp_data; the low word of the first argument
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | errno.EPERM
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2  # of prctl


class Step(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8), ("value", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]


def refuse():
    """OSError where the kernel takes no filter."""
    if platform.machine() != "x86_64":
        return
    steps = (Step * 7)(Step(LOAD, 0, 0, NUMBER), Step(EQUAL, 0, 3, ARCH_PRCTL), Step(LOAD, 0, 0, ARGUMENT),
                       Step(EQUAL, 2, 0, REQUEST[0]), Step(EQUAL, 1, 0, REQUEST[1]), Step(RETURN, 0, 0, ALLOW),
                       Step(RETURN, 0, 0, REFUSE))
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(steps), steps)
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or libc.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "AMX cannot be kept off: " + os.strerror(ctypes.get_errno()))
