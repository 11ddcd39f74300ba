#!/bin/sh
# SPDX-License-Identifier: MIT
# k3_test brings its own worker; airunnerd beside it must not be in its way.
exec with-daemon.sh k3_test
