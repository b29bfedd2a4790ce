/* limit [out=FILE.csv] [group ...]: see limit.h; "put" and "get" are memcpy between private
 * memory and the half of a shared mapping that the other process touched first.
 */
#define _GNU_SOURCE
#include "limit.h"
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    _Alignas(128) _Atomic int arrived;
    _Alignas(128) _Atomic int phase;
    _Alignas(128) _Atomic int asleep_arrived;
    _Alignas(128) _Atomic int asleep_phase;
    _Alignas(128) double value[2];
} control_t;

char *halves;
double *matrices;
static control_t *control;

/* A memory file, as a user's own shared heap would be. */
void *shared(size_t bytes)
{
    int fd = memfd_create("limit", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) {
        perror("memfd");
        exit(1);
    }
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    close(fd);
    return p;
}

pid_t fork_bound(void)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        perror("fork");
        exit(1);
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
    }
    return child;
}

void meet(void)
{
    int phase = atomic_load(&control->phase);
    if (atomic_fetch_add(&control->arrived, 1) == 1) {
        atomic_store(&control->arrived, 0);
        atomic_store_explicit(&control->phase, phase + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&control->phase, memory_order_acquire) == phase; spins++)
        if (spins > 20000) {
            sched_yield();
            spins = 0;
        }
}

void meet_asleep(void)
{
    int phase = atomic_load(&control->asleep_phase);
    if (atomic_fetch_add(&control->asleep_arrived, 1) == 1) {
        atomic_store(&control->asleep_arrived, 0);
        atomic_store(&control->asleep_phase, phase + 1);
        syscall(SYS_futex, &control->asleep_phase, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    while (atomic_load(&control->asleep_phase) == phase)
        syscall(SYS_futex, &control->asleep_phase, FUTEX_WAIT, phase, NULL, NULL, 0);
}

static double larger(double value)
{
    control->value[bench_rank] = value;
    meet();
    double a = control->value[0], b = control->value[1];
    meet();
    return a > b ? a : b;
}

/* Enter every page of the mapping into this process's page table before anything is measured. */
static void visit(const volatile char *p, size_t bytes)
{
    for (size_t k = 0; k < bytes; k += 4096) (void)p[k];
}

int main(int argc, char **argv)
{
    static const group_t groups[] = {
        { "element", element_rows }, { "contiguous", contiguous_rows }, { "strided", strided_rows },
        { "inflight", in_flight_rows }, { "random", random_rows }, { "counter", counter_rows }, { "message", message_rows }, { "active", active_rows },
        { "sync", sync_rows }, { "sync8", sync8_rows }, { "job", job_rows }, { "whole", whole_rows },
        { "transpose", transpose_rows }, { "stencil", stencil_rows },
    };
    size_t elements = (size_t)ORDER * ORDER, half = elements / 2;
    control = shared(sizeof *control);
    halves = shared(2 * HALF);
    matrices = shared(3 * elements * 8);
    pid_t child = fork_bound();
    bench_rank = child == 0;
    bench_barrier = meet;
    bench_max = larger;
    memset(halves + (size_t)bench_rank * HALF, 0, HALF);
    for (size_t k = 0; k < 3; k++) memset(matrices + k * elements + (size_t)bench_rank * half, 0, half * 8);
    meet();
    visit(halves, 2 * HALF);
    visit((char *)matrices, 3 * elements * 8);
    bench_main(argc, argv, groups, COUNT(groups));
    if (bench_rank != 0) _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
