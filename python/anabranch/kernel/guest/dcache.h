/* Included before fs/dcache.c: a dentry is destroyed without a switch to another task.
 *
 * shrink_dcache_parent() polls until other tasks have destroyed their dentries. It yields by cond_resched(), which
 * switches only after a tick. In virtual time no tick comes while a task runs: if a task is interrupted in
 * __dentry_kill(), for example a thread that ends, the poll of another, which collects the process, never ends.
 * A guest has one processor and no preemption, so that without cond_resched() no task is interrupted there.
 */
#include <linux/sched.h>

#undef cond_resched
#define cond_resched() ((void)0)
