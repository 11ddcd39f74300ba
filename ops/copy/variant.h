/* SPDX-License-Identifier: MIT */
/* How copies are numbered, in the plan and in the resident kernel. */
#ifndef AIR_COPY_VARIANT_H
#define AIR_COPY_VARIANT_H

#define AIR_COPY_BITS(size) (size)
#define AIR_COPY_CAST(to, from) (16 + (to) * 8 + (from))

#endif /* AIR_COPY_VARIANT_H */
