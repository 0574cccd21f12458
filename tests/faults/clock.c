/* The clock of a process under test: the seconds since 1970 in the file that CLOCK_FILE names, eight bytes.
   Only what tells the time of day is replaced. A library that replaces waits as well, as libfaketime does,
   ends those by which the threads of Python take turns at once, and a server under it spins. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *seconds;

__attribute__((constructor)) static void open_clock(void)
{
    const char *path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *place = mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    if (place == MAP_FAILED)
        abort();
    close(file);
    seconds = place;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!seconds || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return syscall(SYS_clock_gettime, clock, now);
    now->tv_sec = *seconds;
    now->tv_nsec = 0;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
