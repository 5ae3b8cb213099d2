// What a disk would still have after a power loss: preloaded into a server, it writes down how long each file was
// when it was last synced, so that whoever kills the server can cut off the rest. The length is read before the
// sync, as bytes that come during it may miss it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOTS 4096

// slot is a file by its number, which outlives a rename; 0 is a free slot. The table is a mapped file.
struct slot {
	uint64_t inode, size;
};

static struct slot *table;

__attribute__((constructor)) static void open_table(void) {
	const char *path = getenv("HAMMERLOCK_SYNCED");
	if (!path) return;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) return;
	void *m = mmap(0, SLOTS * sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (m != MAP_FAILED) table = m;
}

static void note(uint64_t inode, uint64_t size) {
	for (uint64_t i = 0; i < SLOTS; i++) {
		struct slot *s = &table[(inode + i) % SLOTS];
		uint64_t owner = 0;
		if (__atomic_compare_exchange_n(&s->inode, &owner, inode, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || owner == inode) {
			__atomic_store_n(&s->size, size, __ATOMIC_RELEASE);
			return;
		}
	}
}

static int synced(long call, int fd) {
	struct stat st;
	int known = table && !fstat(fd, &st) && S_ISREG(st.st_mode);
	int r = syscall(call, fd);
	int saved = errno;
	if (!r && known) note(st.st_ino, st.st_size);
	errno = saved;
	return r;
}

int fsync(int fd) { return synced(SYS_fsync, fd); }
int fdatasync(int fd) { return synced(SYS_fdatasync, fd); }
