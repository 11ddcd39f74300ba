// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>

void air_probe(struct vm_area_struct *vma);
void air_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
}
