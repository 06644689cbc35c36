/* debuginfod.c - see debuginfod.h. */
#include "capture/code/debuginfod.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Of elfutils/debuginfod.h. */
struct debuginfod_client;
typedef struct debuginfod_client *begin_function(void);
typedef void end_function(struct debuginfod_client *client);
typedef int find_function(struct debuginfod_client *client, const unsigned char *build_id, int build_id_bytes,
			  char **path);

#ifdef NO_DLOPEN /* a static program can load nothing */

int debuginfod_open(const uint8_t *build_id, uint32_t build_id_bytes)
{
	(void)build_id;
	(void)build_id_bytes;
	return -1;
}

#else

int debuginfod_open(const uint8_t *build_id, uint32_t build_id_bytes)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	void *library = urls && *urls ? dlopen("libdebuginfod.so.1", RTLD_NOW) : NULL;
	struct debuginfod_client *client;
	begin_function *begin;
	find_function *find;
	end_function *end;
	int fd = -1;

	if (!library)
		return -1;
	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&end = dlsym(library, "debuginfod_end");
	client = begin && find && end ? begin() : NULL;
	if (client) {
		fd = find(client, build_id, (int)build_id_bytes, NULL);
		end(client);
	}
	/* It remains loaded: libcurl, which it depends on, cannot safely be unloaded. */
	return fd < 0 ? -1 : fd;
}

#endif
