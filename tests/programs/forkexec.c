/* fork, vfork through posix_spawn, exec of another program, wait. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	char *again[] = {argv[0], "child", NULL};
	int status;
	pid_t pid;

	if (argc > 1)
		return (int)strlen(argv[1]);
	pid = fork();
	if (pid == 0)
		execv(argv[0], again);
	waitpid(pid, &status, 0);
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, (char *[]){"true", NULL}, environ) == 0)
		waitpid(pid, NULL, 0);
	pid = fork();
	if (pid == 0)
		_exit(7);
	waitpid(pid, NULL, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}
