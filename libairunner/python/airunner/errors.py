# SPDX-License-Identifier: MIT
"""Failures as exceptions that carry the library's sentence."""

from ._abi import Status, lib


class AirError(Exception):
    """A call or a submission that failed; .status says how."""

    def __init__(self, status, sentence):
        super().__init__(f"{sentence} [{status.name}]")
        self.status = status


def check(status):
    """Raise unless @status is OK."""
    if status != Status.OK:
        raise AirError(Status(status), lib.air_last_error().decode())
