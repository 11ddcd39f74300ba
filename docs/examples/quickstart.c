// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <airunner.h>
#include <airunner/ops/vector_add.h>

#define TRY(call)                                                              \
	do {                                                                   \
		if ((call) != AIR_OK) {                                        \
			fprintf(stderr, "%s\n", air_last_error());             \
			return 1;                                              \
		}                                                              \
	} while (0)

int main(void)
{
	const int64_t shape[] = { 1024 };
	air_device *dev;
	air_channel *ch;
	air_descriptor *add;
	air_tensor a, b, c;
	air_token token;

	TRY(air_open(NULL, NULL, &dev));
	TRY(air_channel_create(dev, NULL, &ch));
	TRY(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1, shape, &a));
	TRY(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1, shape, &b));
	TRY(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1, shape, &c));
	for (int i = 0; i < 1024; i++) {
		((float *)air_tensor_data(&a))[i] = (float)i;
		((float *)air_tensor_data(&b))[i] = 0.5f;
	}
	TRY(air_create_vector_add_descriptor(ch, &add, &c.desc, &a.desc,
					     &b.desc));

	/* One 64-byte slot. The worker runs it; no system call on the way. */
	TRY(air_execute_vector_add(add, AIR_NO_REF, air_tensor_ref(&c),
				   air_tensor_ref(&a), air_tensor_ref(&b),
				   &token));
	TRY(air_wait(ch, token, AIR_FOREVER, NULL));
	printf("c[1000] = %g\n", ((float *)air_tensor_data(&c))[1000]);

	air_destroy_vector_add_descriptor(add);
	TRY(air_channel_destroy(ch));
	TRY(air_close(dev));
	return 0;
}
