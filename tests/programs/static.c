/* A static program: no loader, IRELATIVE relocations, printf. */
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 10; i++)
		printf("%d %s %f\n", i * argc, argv[0] ? "x" : "", i / 3.0);
	return 0;
}
