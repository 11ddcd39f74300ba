// SPDX-License-Identifier: GPL-2.0-only
#include <linux/eventfd.h>

void air_probe(struct eventfd_ctx *ctx);
void air_probe(struct eventfd_ctx *ctx)
{
	eventfd_signal(ctx, 1);
}
