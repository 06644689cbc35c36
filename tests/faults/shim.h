/* shim.h - the calls that shim.c can make fail. */
#ifndef TESTS_FAULTS_SHIM_H
#define TESTS_FAULTS_SHIM_H

enum call {
	CALL_MEMORY,
	CALL_WRITE,
	CALL_SYNC,
	CALL_RENAME,
	CALL_OPEN,
	CALL_READ,
	CALL_MMAP,
	CALL_UNLINK,
	CALL_TRUNCATE,
	CALL_LINK,
	CALL_CLOSE,
	CALLS
};

#endif
