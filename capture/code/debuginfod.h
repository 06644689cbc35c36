/*
 * debuginfod.h - debug files from the servers that $DEBUGINFOD_URLS names.
 *
 * By elfutils' libdebuginfod, which is loaded when it is first needed, so it need not be there: neither to
 * build nor to run. It keeps what it fetched in its cache ($DEBUGINFOD_CACHE_PATH), and has its own time
 * limits ($DEBUGINFOD_TIMEOUT).
 */
#ifndef CAPTURE_CODE_DEBUGINFOD_H
#define CAPTURE_CODE_DEBUGINFOD_H

#include <stdint.h>

/*
 * Opens the debug file of that build id. Returns its descriptor, or -1: the variable is not set or empty (then
 * nobody is asked), the library is not there, or no server has the file.
 */
int debuginfod_open(const uint8_t *build_id, uint32_t build_id_bytes);

#endif
