/* First process of the guest. It mounts what programs expect, runs the job's command and powers the machine off.
 *
 * The kernel passes `job=FOLDER` of its command line on as an environment variable: a folder of the host that holds
 * `command`, a shell script, and receives `out`, `err` and `status`. Everything else of the host is read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *JOB = "/run/job";

static void fail(const char *what)
{
	perror(what);
	sync();
	reboot(RB_POWER_OFF);
}

static void must_mount(const char *source, const char *target, const char *type, const char *data)
{
	/* Busy: the kernel has mounted it itself. */
	if (mount(source, target, type, 0, data) != 0 && errno != EBUSY)
		fail(target);
}

static void redirect(const char *name, int descriptor)
{
	char path[64];
	int file;

	snprintf(path, sizeof path, "%s/%s", JOB, name);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (file < 0 || dup2(file, descriptor) < 0)
		fail(path);
}

int main(void)
{
	const char *job = getenv("job");
	FILE *written;
	pid_t child;
	int status = 0;

	if (!job) {
		fprintf(stderr, "init: no job= on the kernel's command line\n");
		reboot(RB_POWER_OFF);
	}
	must_mount("proc", "/proc", "proc", NULL);
	must_mount("sys", "/sys", "sysfs", NULL);
	must_mount("run", "/run", "tmpfs", NULL);
	must_mount("dev", "/dev", "devtmpfs", NULL);
	mkdir("/run/netns", 0755);
	mkdir("/run/home", 0700);
	mkdir("/run/tmp", 01777);
	setenv("HOME", "/run/home", 1);
	setenv("TMPDIR", "/run/tmp", 1);
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	mkdir(JOB, 0755);
	must_mount("none", JOB, "hostfs", job);
	mkdir("/dev/net", 0755);
	mkdir("/dev/shm", 01777);
	mknod("/dev/net/tun", S_IFCHR | 0666, makedev(10, 200));
	if (chdir("/run/home") != 0)
		fail("/run/home");

	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		char command[64];

		setsid();
		redirect("out", 1);
		redirect("err", 2);
		snprintf(command, sizeof command, "%s/command", JOB);
		execl("/bin/sh", "sh", command, (char *)NULL);
		fail("/bin/sh");
	}
	/* Orphans of the job end up here as well. */
	for (;;) {
		int ended;
		pid_t who = wait(&ended);

		if (who == child) {
			status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
			break;
		}
		if (who < 0)
			fail("wait");
	}
	written = fopen("/run/job/status", "w");
	if (!written || fprintf(written, "%d\n", status) < 0 || fclose(written) != 0)
		fail("status");
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
