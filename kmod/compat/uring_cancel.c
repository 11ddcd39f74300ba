// SPDX-License-Identifier: GPL-2.0-only
/* A parked command that cannot be cancelled keeps its process from exiting. */
#include <linux/io_uring/cmd.h>

void air_probe(struct io_uring_cmd *cmd, unsigned int flags);
void air_probe(struct io_uring_cmd *cmd, unsigned int flags)
{
	const void *arg = io_uring_sqe_cmd(cmd->sqe);

	if (!arg || flags & IO_URING_F_CANCEL)
		io_uring_cmd_done(cmd, 0, 0, flags);
	else
		io_uring_cmd_mark_cancelable(cmd, flags);
}
