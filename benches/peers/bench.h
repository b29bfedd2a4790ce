/* What every peer program shares: a clock, medians, the rule for measuring one
 * operation, random subscripts, and rows of the result file.
 *
 * A result file is CSV: op,shape,value,unit,best,trials,iters
 *   value   median over the trials
 *   best    the best trial (shortest time, highest rate)
 *   unit    ns us ms | GB/s GFLOP/s M/s Mcell/s      (powers of ten)
 */
#ifndef BENCH_H
#define BENCH_H
#include <stddef.h>
#include <stdint.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

typedef void (*bench_op)(void *context);

typedef struct {
    double median, best;        /* seconds for one iteration */
    int trials;
    long iterations;            /* in each trial */
} stat_t;

/* A group of rows that one run can pick by name. */
typedef struct {
    const char *name;
    void (*run)(void);
} group_t;

/* Set by each program before it measures anything. */
extern int bench_rank;
extern void (*bench_barrier)(void);
extern double (*bench_max)(double);     /* largest of all ranks' values, on every rank */

/* Reads BENCH_TRIALS, BENCH_TARGET_MS, BENCH_BUDGET_S, opens out=FILE on rank 0 and
 * runs the groups named on the command line (all when none is). */
void bench_main(int argc, char **argv, const group_t *groups, size_t count);

/* One rank measures `op`, the others do nothing; `finish` (may be NULL) completes what
 * is still under way and is run once, inside the timed region, after the last iteration. */
stat_t measure_alone(bench_op op, bench_op finish, void *context);

/* Every rank calls `op` equally often; the time is the slowest rank's. */
stat_t measure_together(bench_op op, void *context);

/* Rank 0 times one `op` 2 ms after rank `target` has begun to compute for 100 ms without calling any
 * library; collective. What has to wait for the target takes 98 ms. */
stat_t measure_busy(bench_op op, void *context, int target);

/* Summary of times that the caller took itself; sorts them. */
stat_t summary(double *seconds, int trials);

/* One line of the result file (rank 0 only). `amount` is what one iteration did: bytes for
 * GB/s, operations for GFLOP/s, elements for M/s, and for times how many operations. */
void row(const char *op, const char *shape, const char *unit, stat_t stat, double amount);

double now(void);
const char *bench_option(int argc, char **argv, const char *key, const char *otherwise);
void bench_failed(const char *what, double got, double expected);
void *pages(size_t bytes);              /* zeroed, page-aligned, touched */
const char *size_name(size_t bytes);    /* "64KiB"; the buffer is static */
uint64_t random64(void);

/* Random subscripts of a block of powers of two, cheap enough to draw inside the loop that is
 * measured. Each pass starts from the same seed, so that a pass visits the same elements. */
typedef struct {
    uint64_t state;
    int row_bits, column_bits;
} subscripts_t;

static inline void next_subscript(subscripts_t *s, size_t *i, size_t *j)
{
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    *i = s->state >> (64 - s->row_bits);
    *j = (s->state >> (64 - s->row_bits - s->column_bits)) & (((size_t)1 << s->column_bits) - 1);
}

#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

/* The sizes and shapes of all programs, so that their rows have the same names. */
#define SUBSCRIPTS 100000               /* random single elements in one pass */
#define IN_FLIGHT 64
#define LISTED 100000                   /* elements of a gather or scatter */
#define ORDER 4096                      /* of the square arrays of the whole-array rows */

typedef struct {
    const char *name;
    int row_bits, column_bits;
} block_t;
static const block_t BLOCKS[] = { { "4MiB", 9, 10 }, { "64MiB", 11, 12 } };
static const size_t CONTIGUOUS[] = { 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB };
static const size_t CHUNKS[] = { 16, 64, 256, 1024 };
static const size_t STRIDED[] = { MIB, 16 * MIB };
static const size_t REMOTE[] = { 8, 4 * KIB, MIB };      /* contiguous, from node to node */
static const size_t MESSAGES[] = { 100, KIB, 64 * KIB, 500 * KIB };   /* from one rank to another */
static const size_t LETTERS[] = { 8, 100, 8 * KIB, MIB };             /* the same, to whoever is asked for one */
enum { CALLS = 1000, ASKED = 64, ANSWERED = 8 };                       /* between two syncs; bytes of a call and of its answer */
static const int MATMUL[] = { 256, 1024, 2048 };

#define COUNT(a) (sizeof(a) / sizeof *(a))
#endif
