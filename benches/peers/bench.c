#define _GNU_SOURCE
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_TRIALS 60
#define MOST_ITERATIONS 1000000

int bench_rank;
void (*bench_barrier)(void);
double (*bench_max)(double);

static int trials = 11;
static double target = 0.005;   /* seconds for one trial */
static double budget = 1.0;     /* seconds for one row, about */
static FILE *csv;

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

stat_t summary(double *seconds, int n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, ascending);
    double middle = n % 2 ? seconds[n / 2] : 0.5 * (seconds[n / 2 - 1] + seconds[n / 2]);
    return (stat_t){ middle, seconds[0], n, 1 };
}

typedef struct {
    bench_op op, finish;
    void *context;
    int together;
} job_t;

static double timed(const job_t *job, long iterations)
{
    if (job->together) bench_barrier();
    double start = now();
    for (long i = 0; i < iterations; i++) job->op(job->context);
    if (job->finish) job->finish(job->context);
    double seconds = now() - start;
    return job->together ? bench_max(seconds) : seconds;
}

/* Warm up, find how many iterations fill one trial (the better of two samples decides), then
 * take the trials. A path slower than half the budget keeps its only sample. */
static stat_t measure(const job_t *job)
{
    double first = timed(job, 1), seconds[MOST_TRIALS];
    if (first > budget / 2) return summary(&first, 1);
    long iterations = 1;
    double sample;
    for (;;) {
        double a = timed(job, iterations), b = timed(job, iterations);
        sample = a < b ? a : b;
        if (sample >= target / 4 || iterations >= MOST_ITERATIONS) break;
        iterations *= 4;
    }
    double each = sample / (double)iterations;
    iterations = (long)(target / each);
    if (iterations < 1) iterations = 1;
    int n = trials;
    while (n > 3 && n * (double)iterations * each > budget) n--;
    for (int k = 0; k < n; k++) seconds[k] = timed(job, iterations) / (double)iterations;
    stat_t s = summary(seconds, n);
    s.iterations = iterations;
    return s;
}

stat_t measure_alone(bench_op op, bench_op finish, void *context)
{
    return measure(&(job_t){ op, finish, context, 0 });
}

stat_t measure_together(bench_op op, void *context)
{
    return measure(&(job_t){ op, NULL, context, 1 });
}

static void compute(double seconds)
{
    volatile double x = 1;
    for (double start = now(); now() - start < seconds;)
        for (int i = 0; i < 1000; i++) x = x * 1.0000001 + 1e-9;
}

stat_t measure_busy(bench_op op, void *context, int target)
{
    enum { TRIALS = 5 };
    double seconds[TRIALS];
    for (int k = 0; k < TRIALS; k++) {
        bench_barrier();
        if (bench_rank == target) compute(0.1);
        if (bench_rank == 0) {
            compute(0.002);
            double start = now();
            op(context);
            seconds[k] = now() - start;
        }
        bench_barrier();
    }
    return bench_rank == 0 ? summary(seconds, TRIALS) : (stat_t){ 0, 0, 0, 0 };
}

static double in_unit(const char *unit, double seconds, double amount)
{
    if (!strcmp(unit, "ns")) return seconds / amount * 1e9;
    if (!strcmp(unit, "us")) return seconds / amount * 1e6;
    if (!strcmp(unit, "ms")) return seconds / amount * 1e3;
    if (!strcmp(unit, "M/s") || !strcmp(unit, "Mcell/s")) return amount / seconds * 1e-6;
    return amount / seconds * 1e-9;     /* GB/s, GFLOP/s */
}

void row(const char *op, const char *shape, const char *unit, stat_t s, double amount)
{
    if (bench_rank != 0) return;
    fprintf(csv, "%s,%s,%.6g,%s,%.6g,%d,%ld\n", op, shape, in_unit(unit, s.median, amount), unit,
            in_unit(unit, s.best, amount), s.trials, s.iterations);
    fflush(csv);
}

void bench_failed(const char *what, double got, double expected)
{
    fprintf(stderr, "VERIFY-FAIL rank %d %s: %.17g instead of %.17g\n", bench_rank, what, got, expected);
}

void *pages(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, bytes)) {
        perror("posix_memalign");
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

const char *size_name(size_t bytes)
{
    static char name[32];
    if (bytes >= MIB) snprintf(name, sizeof name, "%zuMiB", bytes / MIB);
    else if (bytes >= KIB) snprintf(name, sizeof name, "%zuKiB", bytes / KIB);
    else snprintf(name, sizeof name, "%zuB", bytes);
    return name;
}

/* splitmix64 */
uint64_t random64(void)
{
    static uint64_t state = 0x9E3779B97F4A7C15u;
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

const char *bench_option(int argc, char **argv, const char *key, const char *otherwise)
{
    size_t n = strlen(key);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], key, n) && argv[i][n] == '=') return argv[i] + n + 1;
    return otherwise;
}

static int wanted(int argc, char **argv, const char *name)
{
    int named = 0;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' || strchr(argv[i], '=')) continue;
        named = 1;
        if (!strcmp(argv[i], name)) return 1;
    }
    return !named;
}

static void read_environment(void)
{
    const char *e;
    if ((e = getenv("BENCH_TRIALS"))) trials = atoi(e);
    if (trials < 1) trials = 1;
    if (trials > MOST_TRIALS) trials = MOST_TRIALS;
    if ((e = getenv("BENCH_TARGET_MS"))) target = atof(e) * 1e-3;
    if ((e = getenv("BENCH_BUDGET_S"))) budget = atof(e);
}

void bench_main(int argc, char **argv, const group_t *groups, size_t count)
{
    read_environment();
    if (bench_rank == 0) {
        const char *path = bench_option(argc, argv, "out", NULL);
        csv = path ? fopen(path, "w") : stdout;
        if (!csv) {
            perror(path);
            exit(1);
        }
        fprintf(csv, "op,shape,value,unit,best,trials,iters\n");
    }
    for (size_t i = 0; i < count; i++) {
        if (!wanted(argc, argv, groups[i].name)) continue;
        double start = now();
        bench_barrier();
        groups[i].run();
        bench_barrier();
        if (bench_rank == 0) fprintf(stderr, "# %-10s %.2f s\n", groups[i].name, now() - start);
    }
    if (csv) fclose(csv);
}
