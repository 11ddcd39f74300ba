// SPDX-License-Identifier: MIT
/*
 * A kernel of one's own through the ring. It needs a GPU to run, not to build:
 *
 *	nvcc -arch=native -cubin -o saxpy.cubin docs/examples/saxpy.cu
 *	build/release/docs/examples/launch saxpy.cubin
 */
#include <err.h>
#include <stddef.h>
#include <stdio.h>
#include <airunner/launch.h>

#define TRY(call) if (call) errx(1, "%s", air_last_error())
#define N 1000000

/* The kernel's parameters, as the compiler lays them out. */
struct args {
	uint64_t y, x; /* addresses: the worker fills them in */
	float a;
	unsigned int n;
};

int main(int argc, char **argv)
{
	struct args args = { .a = 2, .n = N };
	struct air_launch_config config = {
		.size = sizeof(config),
		.grid = { (N + 255) / 256, 1, 1 },
		.block = { 256, 1, 1 },
	};
	struct air_pointer pointer[2];
	struct air_completion done;
	air_buffer *y, *x;
	air_device *dev;
	air_channel *ch;
	air_module *module;
	air_function *saxpy;
	air_token token;

	if (argc < 2)
		errx(2, "usage: launch CUBIN");
	TRY(air_open(NULL, NULL, &dev));
	TRY(air_channel_create(dev, NULL, &ch));
	TRY(air_module_load_file(ch, argv[1], &module));
	TRY(air_function_get(module, "saxpy", &saxpy));
	TRY(air_buffer_alloc(ch, N * sizeof(float), AIR_HOST, &y));
	TRY(air_buffer_alloc(ch, N * sizeof(float), AIR_HOST, &x));
	for (int i = 0; i < N; i++) {
		((float *)air_buffer_data(y))[i] = 1;
		((float *)air_buffer_data(x))[i] = (float)i;
	}
	pointer[0] = (struct air_pointer){ .ref = air_buffer_ref(y, 0),
					   .bytes = N * sizeof(float),
					   .offset = offsetof(struct args, y) };
	pointer[1] = (struct air_pointer){ .ref = air_buffer_ref(x, 0),
					   .bytes = N * sizeof(float),
					   .offset = offsetof(struct args, x) };
	TRY(air_launch(saxpy, &config, &args, sizeof(args), pointer, 2,
		       &token));
	TRY(air_wait(ch, token, AIR_FOREVER, &done));
	printf("y[1000] = %g, %.1f us\n", ((float *)air_buffer_data(y))[1000],
	       (double)done.duration / 1e3);
	TRY(air_module_unload(module));
	TRY(air_channel_destroy(ch)); /* its buffers go with it */
	TRY(air_close(dev));
	return 0;
}
