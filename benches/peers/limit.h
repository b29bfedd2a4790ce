/* The machine's own limit: two processes over one shared mapping, no library. */
#ifndef LIMIT_H
#define LIMIT_H
#include "bench.h"
#include <stdatomic.h>
#include <sys/types.h>

#define HALF (64 * MIB)                 /* what each process owns for the patch rows */

extern char *halves;                    /* 2 * HALF; half i is touched first by process i */
extern double *matrices;                /* three ORDER x ORDER arrays, halves touched likewise */
#define OTHERS (halves + HALF)          /* the half that process 0 writes to and reads from */

void *shared(size_t bytes);             /* a new mapping that both processes see if made before the fork */
pid_t fork_bound(void);                 /* fork; the child dies with its parent */
void meet(void);                        /* the barrier that is measured: spins */
void meet_asleep(void);                 /* waits in the kernel: leaves the core to the one who measures */

/* Process 0 measures, the other one sleeps. */
#define ALONE(...) do { if (bench_rank == 0) { __VA_ARGS__ } meet_asleep(); } while (0)

void element_rows(void);
void contiguous_rows(void);
void strided_rows(void);
void in_flight_rows(void);
void random_rows(void);
void counter_rows(void);
void message_rows(void);
void active_rows(void);
void sync_rows(void);
void sync8_rows(void);
void job_rows(void);
void whole_rows(void);
void transpose_rows(void);
void stencil_rows(void);
#endif
