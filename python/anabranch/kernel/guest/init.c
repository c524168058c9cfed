/* First process of the guest. It mounts what programs expect, runs the job's command and powers the machine off.
 *
 * The kernel passes `job=FOLDER` of its command line on as an environment variable: a folder of the host that holds
 * `command`, a shell script, and receives `out`, `err`, `status` and, from time to time, `clock`. Everything else of the
 * host is read-only.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
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

/* Tells the host the time, by which it sees whether time passes. The text keeps its length: it is never seen half written. */
static struct timespec beat(void)
{
	struct timespec now;
	char text[32];
	int file, length;

	clock_gettime(CLOCK_MONOTONIC, &now);
	length = snprintf(text, sizeof text, "%010lld.%03ld\n", (long long)now.tv_sec, now.tv_nsec / 1000000);
	file = open("/run/job/clock", O_WRONLY | O_CREAT, 0644);
	if (file < 0 || write(file, text, (size_t)length) != length)
		fail("/run/job/clock");
	close(file);
	return now;
}

/* The status of the job's command, as a shell has it. */
static int wait_for(pid_t child, const sigset_t *ended)
{
	struct timespec until_beat = {0, 0};

	for (;;) {
		pid_t who;
		int status;

		if (sigtimedwait(ended, NULL, &until_beat) < 0) {
			struct timespec now = beat();

			/* A tenth of a second; of a long time, a hundredth. */
			until_beat.tv_sec = now.tv_sec / 100;
			until_beat.tv_nsec = 100000000;
		}
		/* Orphans of the job end up here as well. */
		while ((who = waitpid(-1, &status, WNOHANG)) > 0)
			if (who == child)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

int main(void)
{
	const char *job = getenv("job");
	FILE *written;
	sigset_t ended;
	pid_t child;
	int status;

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

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		char command[64];

		sigprocmask(SIG_UNBLOCK, &ended, NULL);
		setsid();
		redirect("out", 1);
		redirect("err", 2);
		snprintf(command, sizeof command, "%s/command", JOB);
		execl("/bin/sh", "sh", command, (char *)NULL);
		fail("/bin/sh");
	}
	status = wait_for(child, &ended);
	written = fopen("/run/job/status", "w");
	if (!written || fprintf(written, "%d\n", status) < 0 || fclose(written) != 0)
		fail("status");
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
