// SPDX-License-Identifier: GPL-2.0-only
/* Compiles nowhere: calls what no kernel has, with what no kernel takes. */
#include <linux/mm.h>

void air_probe(struct vm_area_struct *vma);
void air_probe(struct vm_area_struct *vma)
{
	air_no_kernel_has_this(vma->air_nor_this);
}
