/* seekable_format.h - the numbers of zstd's seekable format, for its reader and writer (seekable.h). */
#ifndef SCHEMA_SEEKABLE_FORMAT_H
#define SCHEMA_SEEKABLE_FORMAT_H

#define SEEKABLE_SKIPPABLE_MAGIC UINT32_C(0x184D2A5E) /* of the frame that the table is in */
#define SEEKABLE_MAGIC		 UINT32_C(0x8F92EAB1) /* the file's last bytes */

#define SEEKABLE_FRAMES_MAX	 UINT32_C(0x8000000) /* zstd's own limit */

enum {
	SEEKABLE_SKIPPABLE_HEADER_BYTES = 8, /* magic and size */
	SEEKABLE_FOOTER_BYTES = 9,	     /* the number of frames, a byte of flags, SEEKABLE_MAGIC */
	SEEKABLE_CHECKSUMS = 0x80,	     /* flag: entries have 12 bytes, not 8 */
	SEEKABLE_RESERVED = 0x7c,	     /* flags that must be 0 */
	SEEKABLE_FRAME_EXTRA = 64	     /* bytes that a frame may have beyond ZSTD_compressBound() */
};

#endif
