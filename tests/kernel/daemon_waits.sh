#!/bin/sh
# SPDX-License-Identifier: MIT
# The library's ways of waiting at the module, and what it says when the module
# refuses.
with-daemon.sh lib_waits || exit
nothing-left.sh
