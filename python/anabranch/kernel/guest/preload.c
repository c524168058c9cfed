/* Loaded before the kernel (LD_PRELOAD), which is a dynamically linked program of the host:
 *
 * - The kernel gets its entropy from the C library's getrandom(), which here answers from a generator with a seed.
 * - The host's address randomization is turned off: the size of the guest's memory depends on where the heap lies.
 * - The kernel ends when the program that started it ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

static const char *SEED = "ANABRANCH_KERNEL_SEED";

/* SplitMix64 (Steele, Lea, Flood, 2014). The kernel mixes the numbers with its own cipher. */
static uint64_t next(void)
{
	static uint64_t state;
	static int seeded;
	uint64_t mixed;

	if (!seeded) {
		const char *seed = getenv(SEED);

		state = seed ? strtoull(seed, NULL, 10) : 0;
		seeded = 1;
	}
	mixed = state += 0x9e3779b97f4a7c15u;
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
	return mixed ^ mixed >> 31;
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *at = buffer;
	size_t left, part;

	(void)flags;
	for (left = length; left > 0; left -= part, at += part) {
		uint64_t number = next();

		part = left < sizeof number ? left : sizeof number;
		memcpy(at, &number, part);
	}
	return (ssize_t)length;
}

int getentropy(void *buffer, size_t length)
{
	if (length > 256) {
		errno = EIO;
		return -1;
	}
	getrandom(buffer, length, 0);
	return 0;
}

/* Takes effect with the next program. */
static int without_randomized_addresses(void)
{
	int now = personality(0xffffffff);

	if (now == -1 || now & ADDR_NO_RANDOMIZE || personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1)
		return 0;
	/* A sandbox may ignore the call. */
	return (personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0;
}

/* The C library passes the program's arguments to constructors. */
__attribute__((constructor)) static void prepare(int count, char **arguments, char **environment)
{
	(void)count;
	/* SIGTERM, because only the kernel itself ends the processes of its guest. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (without_randomized_addresses())
		execve("/proc/self/exe", arguments, environment);
}
