#!/bin/sh
# SPDX-License-Identifier: MIT
# Two clients, one worker: by root, and by a user of the group.
with-daemon.sh sh -c '
	two_clients /dev/airunner 3 &&
	su alice -c "PATH=$PATH two_clients /dev/airunner 3"'
