// SPDX-License-Identifier: MIT
#include <err.h>
#include <stdio.h>
#include <airunner/ops/vector_add.h>

#define TRY(call) if (call) errx(1, "%s", air_last_error())

int main(void)
{
	air_device *dev;
	air_channel *ch;
	air_tensor t[3];	/* c = a + b */
	air_descriptor *add;
	air_token token;

	TRY(air_open(NULL, NULL, &dev));
	TRY(air_channel_create(dev, NULL, &ch));
	for (int i = 0; i < 3; i++)
		TRY(air_tensor_alloc(ch, AIR_HOST, AIR_F32, 1,
				     (const int64_t[]){ 1024 }, &t[i]));
	for (int i = 0; i < 1024; i++) {
		((float *)air_tensor_data(&t[1]))[i] = (float)i;
		((float *)air_tensor_data(&t[2]))[i] = 0.5f;
	}
	TRY(air_create_vector_add_descriptor(ch, &add, &t[0].desc, &t[1].desc,
					     &t[2].desc));
	/* One 64-byte slot. The worker runs it; no system call on the way. */
	TRY(air_execute_vector_add(add, AIR_NO_REF, air_tensor_ref(&t[0]),
				   air_tensor_ref(&t[1]), air_tensor_ref(&t[2]),
				   &token));
	TRY(air_wait(ch, token, AIR_FOREVER, NULL));
	printf("c[1000] = %g\n", ((float *)air_tensor_data(&t[0]))[1000]);
	TRY(air_destroy_vector_add_descriptor(add));
	TRY(air_channel_destroy(ch));	/* its tensors go with it */
	TRY(air_close(dev));
	return 0;
}
