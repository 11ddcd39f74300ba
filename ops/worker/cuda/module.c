// SPDX-License-Identifier: MIT
#include "ops/worker/cuda/module.h"

#include <stdlib.h>
#include <string.h>

struct air_module_function {
	struct air_module_function *next;
	struct air_module *module;
	CUfunction fn;
	uint32_t generation;
	uint32_t param_bytes;	/* 0: not known */
	int max_shared;		/* dynamic shared memory allowed so far */
	char name[AIRUNNER_FUNCTION_NAME];
};

struct air_module {
	struct air_cuda *cuda;
	CUmodule mod;
	uint32_t generation;
	uint64_t size;
	struct air_module_function *functions;
	unsigned char image[];
};

/* What a block has without asking for more. */
#define SHARED_DEFAULT (48 * 1024)

static CUresult load(struct air_module *m, char *log, size_t log_size)
{
	CUjit_option option[] = { CU_JIT_ERROR_LOG_BUFFER,
				  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *value[] = { log, (void *)log_size };
	CUresult r;

	air_cuda_quiet_begin(m->cuda);
	r = cu.ModuleLoadDataEx(&m->mod, m->image, 2, option, value);
	air_cuda_quiet_end(m->cuda);
	if (r == CUDA_SUCCESS)
		m->generation = m->cuda->generation;
	return r;
}

air_status air_module_load(struct air_cuda *c, const void *image,
			   uint64_t size, struct air_module **out,
			   struct air_error *e)
{
	char log[96] = "";
	struct air_module *m;
	air_status st;
	CUresult r;

	if (c->dead)
		return air_fail(e, AIR_DEVICE_LOST,
				"module: %s is lost to this process",
				c->device_name);
	if (size < 16)
		return air_fail(e, AIR_BAD_ARGUMENT,
				"module: %llu bytes are no cubin, PTX or fatbin",
				(unsigned long long)size);
	m = calloc(1, sizeof(*m) + size + 1);
	if (!m)
		return air_fail(e, AIR_NO_MEMORY, "module: out of memory");
	m->cuda = c;
	m->size = size;
	memcpy(m->image, image, size);
	r = load(m, log, sizeof(log));
	if (r != CUDA_SUCCESS) {
		log[strcspn(log, "\n")] = '\0';
		st = air_cuda_is_fatal(c, r) ? AIR_DEVICE_LOST :
					       air_cuda_status(r);
		free(m);
		return air_fail(e, st, "module: %s%s%.80s",
				air_cuda_error_name(r), *log ? ": " : "", log);
	}
	*out = m;
	return AIR_OK;
}

void air_module_unload(struct air_cuda *c, struct air_module *m)
{
	if (m->generation == c->generation && !c->lost) {
		air_cuda_quiet_begin(c);
		cu.ModuleUnload(m->mod);
		air_cuda_quiet_end(c);
	}
	while (m->functions) {
		struct air_module_function *f = m->functions;

		m->functions = f->next;
		free(f);
	}
	free(m);
}

static CUresult refresh(struct air_module_function *f)
{
	struct air_module *m = f->module;
	CUresult r = CUDA_SUCCESS;
	char log[96] = "";

	if (m->generation != m->cuda->generation)
		r = load(m, log, sizeof(log));
	if (r != CUDA_SUCCESS)
		return r;
	air_cuda_quiet_begin(m->cuda);
	r = cu.ModuleGetFunction(&f->fn, m->mod, f->name);
	if (r == CUDA_SUCCESS)
		r = air_cuda_load_now(f->fn);
	air_cuda_quiet_end(m->cuda);
	if (r == CUDA_SUCCESS) {
		f->generation = m->cuda->generation;
		f->max_shared = SHARED_DEFAULT;
	}
	return r;
}

/*
 * Offsets and sizes of the parameters, which the cubin carries. Drivers before
 * 12.4 do not tell; then the sizes are not checked.
 */
static void describe(struct air_module_function *f,
		     struct airunner_function_record *record)
{
	size_t offset, size;
	uint32_t i = 0;
	int v = 0;

	cu.FuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
			    f->fn);
	record->max_threads = (uint32_t)v;
	v = 0;
	cu.FuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f->fn);
	record->static_shared = (uint32_t)v;
	record->n_params = record->param_bytes = 0;
	if (!cu.FuncGetParamInfo)
		return;
	while (i < AIRUNNER_MAX_PARAMS &&
	       cu.FuncGetParamInfo(f->fn, i, &offset, &size) == CUDA_SUCCESS) {
		record->param[i].offset = (uint32_t)offset;
		record->param[i].size = (uint32_t)size;
		if (offset + size > record->param_bytes)
			record->param_bytes = (uint32_t)(offset + size);
		i++;
	}
	record->n_params = i;
	/* more parameters than the record has room for: not known in full */
	if (i == AIRUNNER_MAX_PARAMS)
		record->param_bytes = 0;
	f->param_bytes = record->param_bytes;
}

air_status air_module_function(struct air_cuda *c, struct air_module *m,
			       struct airunner_function_record *record,
			       struct air_module_function **out,
			       struct air_error *e)
{
	struct air_module_function *f;
	CUresult r;

	if (!memchr(record->name, '\0', sizeof(record->name)))
		return air_fail(e, AIR_BAD_ARGUMENT,
				"function: the name has no end");
	if (c->dead)
		return air_fail(e, AIR_DEVICE_LOST,
				"function %.100s: %s is lost to this process",
				record->name, c->device_name);
	f = calloc(1, sizeof(*f));
	if (!f)
		return air_fail(e, AIR_NO_MEMORY, "function: out of memory");
	f->module = m;
	memcpy(f->name, record->name, sizeof(f->name));
	r = refresh(f);
	if (r != CUDA_SUCCESS) {
		air_status st = air_cuda_is_fatal(c, r) ? AIR_DEVICE_LOST :
							  air_cuda_status(r);

		air_fail(e, st, "function %.100s: %s", f->name,
			 air_cuda_error_name(r));
		free(f);
		return st;
	}
	describe(f, record);
	f->next = m->functions;
	m->functions = f;
	*out = f;
	return AIR_OK;
}

bool air_module_is_stale(const struct air_launch *l)
{
	const struct air_module_function *f = l->function;

	return f->generation != f->module->cuda->generation;
}

CUresult air_module_launch(const struct air_launch *l, CUstream stream)
{
	struct air_module_function *f = l->function;
	size_t arg_bytes = l->arg_bytes;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)l->args,
			  CU_LAUNCH_PARAM_BUFFER_SIZE, &arg_bytes,
			  CU_LAUNCH_PARAM_END };
	CUresult r = CUDA_SUCCESS;

	if (f->generation != f->module->cuda->generation)
		r = refresh(f);
	/* too few bytes would let the kernel read what lies behind them */
	if (r == CUDA_SUCCESS && f->param_bytes && arg_bytes < f->param_bytes)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS && (int)l->shared_bytes > f->max_shared) {
		r = cu.FuncSetAttribute(
			f->fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			(int)l->shared_bytes);
		if (r == CUDA_SUCCESS)
			f->max_shared = (int)l->shared_bytes;
	}
	if (r != CUDA_SUCCESS)
		return r;
	return cu.LaunchKernel(f->fn, l->grid[0], l->grid[1], l->grid[2],
			       l->block[0], l->block[1], l->block[2],
			       l->shared_bytes, stream, NULL, extra);
}
