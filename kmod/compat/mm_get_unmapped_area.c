// SPDX-License-Identifier: GPL-2.0-only
#include <linux/sched/mm.h>

unsigned long air_probe(struct mm_struct *mm);
unsigned long air_probe(struct mm_struct *mm)
{
	return mm_get_unmapped_area(mm, NULL, 0, PAGE_SIZE, 0, 0);
}
