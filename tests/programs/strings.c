/* glibc's string functions, AVX-512 ones where the CPU has them, over many lengths and alignments; qsort. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int main(void)
{
	static char x[600], y[600];
	int v[200];
	unsigned long sum = 0;

	for (int n = 0; n < 300; n += 7) {
		memset(x, 'a' + n % 20, (size_t)n);
		x[n] = 0;
		memcpy(y, x, (size_t)n + 1);
		memmove(y + 3, y, (size_t)n);
		sum += strlen(x) + (size_t)memcmp(x, y, (size_t)n) + (memchr(x, 'z', (size_t)n) != NULL);
		strcpy(y, x);
		sum += strcmp(x, y) == 0;
		sum += strrchr(x, 'b') != NULL;
		sum += strstr(x, "bbbc") != NULL;
	}
	for (int i = 0; i < 200; i++)
		v[i] = (i * 7919) % 1009;
	qsort(v, 200, sizeof *v, compare);
	printf("%lu %d %d\n", sum, v[0], v[199]);
	return 0;
}
