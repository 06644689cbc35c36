/* The same work again and again, with a pause between, until the file `done` is there: between
 * begin() and end() its branches are the same each time, whoever records it. */
#include <sys/prctl.h>
#include <unistd.h>

static volatile unsigned sink;

__attribute__((noipa)) static void begin(void)
{
}
__attribute__((noipa)) static void end(void)
{
}
__attribute__((noipa)) static unsigned add(unsigned a)
{
	return a * 3 + 1;
}
__attribute__((noipa)) static unsigned half(unsigned a)
{
	return a & 1 ? add(a) : a / 2;
}

int main(void)
{
	static unsigned (*const step[])(unsigned) = {half, add, half};

	prctl(PR_SET_TIMERSLACK, 1000);
	while (access("done", F_OK)) {
		begin();
		for (unsigned i = 1; i < 60; i++) {
			unsigned a = i;

			while (a != 1 && a < 1000)
				a = step[a % 3](a);
			sink += a;
		}
		end();
		usleep(100);
	}
	return 0;
}
