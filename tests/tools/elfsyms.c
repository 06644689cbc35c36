/* elfsyms FILE...: what pt-capture takes for the names of a file's code, one line each: address, bytes,
 * type, name. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "capture/code/elf_image.h"
#include "capture/code/elf_symbols.h"

int main(int argc, char **argv)
{
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);
		struct elf_symbols s = {0};
		uint8_t build_id[20];
		struct pt_error e;
		struct stat st;
		int n = elf_file_build_id(argv[i], build_id, &e);
		struct elf_file of = {.elf = elf_begin(fd, ELF_C_READ, NULL), .name = argv[i]};

		if (fd < 0 || fstat(fd, &st) < 0 || !of.elf)
			return 1;
		of.bytes = (uint64_t)st.st_size;
		of.build_id = n > 0 ? build_id : NULL;
		of.build_id_bytes = n > 0 ? (uint32_t)n : 0;
		if (elf_symbols_read(&s, &of, &e) || elf_symbols_add_frames(&s, &of, &e))
			return 1;
		for (size_t k = 0; k < s.count; k++)
			printf("%" PRIx64 " %" PRIu64 " %c %s\n", s.symbols[k].value, s.symbols[k].size,
			       (char)s.symbols[k].type, s.strings + s.symbols[k].name);
		elf_symbols_deinit(&s);
		elf_end(of.elf);
	}
	return 0;
}
