// A clock that a test can set, for one process: preloaded into a server, it shifts the wall clock that the server
// sees and leaves the monotonic one alone. The control file is mapped, so a change counts at once. It calls
// neither malloc nor dlsym: both may ask for the time before the program has begun.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

// control is what the file holds. The count is odd while the next three are being written; seen is the last count that
// the process has read.
struct control {
	int64_t count, offset_ns, anchor_ns, rate_ppb, seen;
};

static struct control *control;

__attribute__((constructor)) static void open_control(void) {
	const char *path = getenv("HAMMERLOCK_CLOCK");
	if (!path) return;
	int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0) return;
	void *m = mmap(0, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	if (m != MAP_FAILED) control = m;
}

static int64_t get(int64_t *field) { return __atomic_load_n(field, __ATOMIC_ACQUIRE); }

// shift turns the true time into the one to show. A writer that died halfway must not hang us for ever.
static void shift(struct timespec *ts) {
	if (!control) return;
	int64_t before, after, offset, anchor, rate;
	int tries = 1000;
	do {
		before = get(&control->count);
		offset = get(&control->offset_ns);
		anchor = get(&control->anchor_ns);
		rate = get(&control->rate_ppb);
		after = get(&control->count);
	} while ((before != after || before & 1) && --tries);
	if (get(&control->seen) != before) __atomic_store_n(&control->seen, before, __ATOMIC_RELEASE);
	int64_t now = ts->tv_sec * SECOND + ts->tv_nsec;
	now += offset + (int64_t)((__int128)(now - anchor) * rate / SECOND);
	ts->tv_sec = now / SECOND;
	ts->tv_nsec = now % SECOND;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	int r = syscall(SYS_clock_gettime, id, ts);
	if (!r && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) shift(ts);
	return r;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec ts;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out) {
	struct timespec ts;
	if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
	if (out) *out = ts.tv_sec;
	return ts.tv_sec;
}
