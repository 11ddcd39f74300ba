// SPDX-License-Identifier: MIT
/*
 * Executors that are not built in: libairunner-<name>.so, looked for in
 * $AIRUNNER_PLUGIN_DIR and then nowhere else; without that, relative to the
 * file this code is in (PREFIX/lib/libairunner.so, PREFIX/bin/airunnerd, or a
 * build folder), and in AIR_PLUGIN_DIR.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/worker/internal.h"

#ifndef AIR_PLUGIN_DIR
#define AIR_PLUGIN_DIR "/usr/local/lib/airunner"
#endif

/* A plug-in stays loaded: CUDA does not like to be unloaded. */
static const struct air_executor_ops *const *load(const char *path,
						  struct air_error *e)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	air_executors_fn fn;

	if (!so) {
		air_fail(e, AIR_NO_DEVICE, "%s", dlerror());
		return NULL;
	}
	*(void **)&fn = dlsym(so, "air_executors");
	if (!fn) {
		air_fail(e, AIR_ABI, "%s: no air_executors() in it", path);
		dlclose(so);
		return NULL;
	}
	return fn(&air_services);
}

/* The directory of this code's own file, with its slash. */
static void own_dir(char *out, size_t size)
{
	Dl_info info;
	char *slash;

	out[0] = '\0';
	if (!dladdr(&air_services, &info) || !info.dli_fname)
		return;
	/* A program's own name is whatever it was started as. */
	if (!strchr(info.dli_fname, '/')) {
		ssize_t n = readlink("/proc/self/exe", out, size - 1);

		out[n > 0 ? n : 0] = '\0';
	} else {
		snprintf(out, size, "%s", info.dli_fname);
	}
	slash = strrchr(out, '/');
	out[slash ? slash + 1 - out : 0] = '\0';
}

const struct air_executor_ops *const *air_plugin_load(const char *name,
						      struct air_error *e)
{
	static const char *const below[] = { "", "airunner/",
					     "../lib/airunner/" };
	const char *dir = secure_getenv("AIRUNNER_PLUGIN_DIR");
	char own[512], path[640];

	if (dir) {
		snprintf(path, sizeof(path), "%s/libairunner-%s.so", dir, name);
		return load(path, e);
	}
	own_dir(own, sizeof(own));
	for (unsigned int i = 0; own[0] && i < 3; i++) {
		snprintf(path, sizeof(path), "%s%slibairunner-%s.so", own,
			 below[i], name);
		if (!access(path, R_OK))
			return load(path, e);
	}
	snprintf(path, sizeof(path), AIR_PLUGIN_DIR "/libairunner-%s.so", name);
	if (!access(path, R_OK))
		return load(path, e);
	air_fail(e, AIR_NO_DEVICE,
		 "libairunner-%s.so is neither beside %s nor in " AIR_PLUGIN_DIR,
		 name, own[0] ? own : "the program");
	return NULL;
}
