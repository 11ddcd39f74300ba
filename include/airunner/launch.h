/* SPDX-License-Identifier: MIT */
/*
 * Kernels of the user's own, through the ring: code from nvcc, CuTe, Triton,
 * TileLang or whatever else makes a cubin, PTX or fatbin. None of them is
 * needed to build or run airunner; an executor that takes device code is
 * (struct air_backend_caps.user_kernels).
 *
 *	air_module_load(ch, image, bytes, &module);
 *	air_function_get(module, "saxpy", &saxpy);
 *	air_launch(saxpy, &config, &args, sizeof(args), refs, 2, &token);
 *
 * A launch is a submission like any other: it keeps the channel's order, has
 * a token and a completion, and costs one slot. Its arguments are the bytes
 * the kernel expects, each argument at its offset; those that are addresses
 * are given as references to buffers, which the worker checks and translates.
 *
 * A kernel that reaches outside its memory breaks the device's context: the
 * launch ends with AIR_DEVICE_FAULT, others that were outstanding with
 * AIR_DEVICE_LOST, and later ones run on a fresh context. Where the driver
 * gives a process no other one, airunnerd ends and the one that is started in
 * its place runs them; in "inproc:" the device is lost to the process, and all
 * work for it ends with AIR_DEVICE_LOST.
 *
 * Thread-safety is that of the channel. After a restart of the worker modules
 * are loaded again by themselves, as descriptors are made again.
 */
#ifndef AIRUNNER_LAUNCH_H
#define AIRUNNER_LAUNCH_H

#include <airunner.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct air_module air_module;
typedef struct air_function air_function;

/**
 * air_module_load() - give device code to the channel's worker
 * @image: cubin, PTX (NUL-terminated) or fatbin; copied
 * @bytes: its length, the NUL of PTX included
 *
 * Waits for the worker. AIR_UNSUPPORTED: none of its executors takes device
 * code, or not this (another architecture, say); AIR_BAD_ARGUMENT: no such
 * image; AIR_QUOTA, AIR_NO_MEMORY. air_last_error() has the compiler's words.
 */
AIR_API air_status air_module_load(air_channel *ch, const void *image,
				   size_t bytes, air_module **out);

/* The same from a file. AIR_SYSTEM when it cannot be read. */
AIR_API air_status air_module_load_file(air_channel *ch, const char *path,
					air_module **out);

/*
 * Unload; its functions go with it. Launches that are outstanding finish
 * first.
 */
AIR_API air_status air_module_unload(air_module *module);

/*
 * Look up a kernel by its (mangled) name. Asked for twice, it is the same
 * function. It belongs to the module. AIR_BAD_ARGUMENT: no such function.
 */
AIR_API air_status air_function_get(air_module *module, const char *name,
				    air_function **out);

#define AIR_MAX_PARAMS 64

/**
 * struct air_function_info - what the image tells of a function
 * @size: sizeof(struct air_function_info), set by the caller
 * @n_params: entries of @param; 0 when the image does not tell
 * @param_bytes: length of the argument bytes; 0 when the image does not tell
 * @max_threads: most threads a block may have
 * @static_shared: bytes of shared memory it has without asking
 * @param: offset and size of each parameter
 */
struct air_function_info {
	uint32_t size;
	uint32_t n_params;
	uint32_t param_bytes;
	uint32_t max_threads;
	uint32_t static_shared;
	struct {
		uint32_t offset;
		uint32_t size;
	} param[AIR_MAX_PARAMS];
};

AIR_API air_status air_function_info(const air_function *function,
				     struct air_function_info *info);

/**
 * struct air_launch_config - how a kernel is launched
 * @size: sizeof(struct air_launch_config)
 * @grid: blocks in each dimension, at least 1
 * @block: threads in each dimension, at least 1
 * @shared_bytes: dynamic shared memory
 * @flags: AIR_CALL_*; a NULL token makes it detached
 * @user_data: handed back with the completion
 * @timeout_ms: as in struct air_call
 */
struct air_launch_config {
	uint32_t size;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
	uint32_t flags;
	uint32_t timeout_ms;
	uint64_t user_data;
};

/**
 * struct air_pointer - an argument that is an address
 * @ref: what it points to; AIR_NO_REF for a null pointer
 * @bytes: how much of it the kernel may touch, from there: bounds-checked
 * @offset: where in the argument bytes its eight bytes are
 */
struct air_pointer {
	air_ref ref;
	uint64_t bytes;
	uint32_t offset;
};

/**
 * air_launch() - submit a launch
 * @args: argument bytes, at most 4096, each argument at its offset. What stands
 *	at the places of @pointers does not matter
 * @pointers: those arguments that are addresses
 * @token: out; NULL: detached
 *
 * Copies everything; never waits for the worker. AIR_FULL: no room in the ring
 * or for the arguments (of some hundred launches); AIR_BAD_ARGUMENT,
 * AIR_BAD_FLAGS. Whether the buffers are large enough is the completion's
 * status: AIR_BAD_HANDLE, AIR_BAD_RANGE with the number of the pointer (1 is
 * the first).
 */
AIR_API air_status air_launch(air_function *function,
			      const struct air_launch_config *config,
			      const void *args, uint32_t arg_bytes,
			      const struct air_pointer *pointers,
			      uint32_t n_pointers, air_token *token);

#ifdef __cplusplus
}
#endif

#endif /* AIRUNNER_LAUNCH_H */
