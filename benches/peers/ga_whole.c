/* Whole-array operations: loops over elements, transposes, matrix product, linear solve. */
#include "ga.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int a, b, c, n;
} arrays_t;

static double alpha = 1.0000001, beta = 2.0, product;

static arrays_t arrays(int n)
{
    int extent[2] = { n, n };
    arrays_t w = { array(C_DBL, 2, extent, NULL), array(C_DBL, 2, extent, NULL), array(C_DBL, 2, extent, NULL), n };
    GA_Zero(w.a);
    GA_Zero(w.b);
    GA_Zero(w.c);
    return w;
}

static void arrays_free(arrays_t *w)
{
    GA_Destroy(w->a);
    GA_Destroy(w->b);
    GA_Destroy(w->c);
}

static void fill(void *w) { GA_Fill(((arrays_t *)w)->a, &alpha); }
static void scale(void *w) { GA_Scale(((arrays_t *)w)->a, &alpha); }
static void copy(void *w) { GA_Copy(((arrays_t *)w)->a, ((arrays_t *)w)->b); }
static void dot(void *w) { product = GA_Ddot(((arrays_t *)w)->a, ((arrays_t *)w)->b); }
static void transpose(void *w) { GA_Transpose(((arrays_t *)w)->a, ((arrays_t *)w)->b); }

static void add(void *context)
{
    arrays_t *w = context;
    GA_Add(&alpha, w->a, &beta, w->b, w->c);
}

static void copy_transposed(void *context)
{
    arrays_t *w = context;
    int low[2] = { 0, 0 }, high[2] = { w->n - 1, w->n - 1 };
    NGA_Copy_patch('T', w->a, low, high, w->b, low, high);
}

static void multiply(void *context)
{
    arrays_t *w = context;
    GA_Dgemm('N', 'N', w->n, w->n, w->n, 1.0, w->a, w->b, 0.0, w->c);
}

static double element(int handle, int i, int j)
{
    int at[2] = { i, j }, leading = 1;
    double value;
    NGA_Get(handle, at, at, &value, &leading);
    return value;
}

static void check(const char *what, double got, double expected)
{
    if (fabs(got - expected) > 1e-9 * fabs(expected)) bench_failed(what, got, expected);
}

void whole_rows(void)
{
    static const struct { const char *name; bench_op op; double passes; } OPS[] = {
        { "fill", fill, 1 }, { "scale", scale, 2 }, { "copy", copy, 2 }, { "add", add, 3 }, { "dot", dot, 2 },
    };
    arrays_t w = arrays(ORDER);
    double elements = (double)ORDER * ORDER, three = 3.0;
    for (size_t o = 0; o < COUNT(OPS); o++) {
        stat_t s = measure_together(OPS[o].op, &w);
        row(OPS[o].name, "4096^2", "GB/s", s, OPS[o].passes * 8.0 * elements);
    }
    GA_Fill(w.a, &beta);
    GA_Fill(w.b, &three);
    dot(&w);
    check("dot", product, 6.0 * elements);
    arrays_free(&w);
}

static void transpose_row(const char *name, bench_op op)
{
    arrays_t w = arrays(ORDER);
    if (bench_rank == 0) {
        int at[2] = { 5, ORDER - 96 }, leading = 1;
        double seven = 7;
        NGA_Put(w.a, at, at, &seven, &leading);
    }
    GA_Sync();
    stat_t s = measure_together(op, &w);
    row(name, "4096^2", "GB/s", s, 16.0 * ORDER * ORDER);
    if (bench_rank == 0) check(name, element(w.b, ORDER - 96, 5), 7);
    GA_Sync();
    arrays_free(&w);
}

void transpose_rows(void)
{
    transpose_row("transpose", transpose);
    transpose_row("copy_transposed", copy_transposed);
}

void matmul_rows(void)
{
    for (size_t k = 0; k < COUNT(MATMUL); k++) {
        int n = MATMUL[k];
        char shape[16];
        double one = 1.0;
        arrays_t w = arrays(n);
        GA_Fill(w.a, &one);
        GA_Fill(w.b, &beta);
        snprintf(shape, sizeof shape, "%d", n);
        stat_t s = measure_together(multiply, &w);
        row("matmul", shape, "GFLOP/s", s, 2.0 * n * n * n);
        if (bench_rank == 0) check("matmul", element(w.c, n - 1, n / 2), 2.0 * n);
        GA_Sync();
        arrays_free(&w);
    }
}

static void fill_diagonally_dominant(int handle, int n)
{
    int low[2], high[2], leading;
    double *part;
    NGA_Distribution(handle, bench_rank, low, high);
    if (low[0] >= 0 && high[0] >= low[0]) {
        NGA_Access(handle, low, high, &part, &leading);
        for (int i = low[0]; i <= high[0]; i++)
            for (int j = low[1]; j <= high[1]; j++)
                part[(size_t)(i - low[0]) * leading + (j - low[1])] = i == j ? 2.0 * n : 1.0 / (1.0 + abs(i - j));
        NGA_Release_update(handle, low, high);
    }
    GA_Sync();
}

/* GA_Lu_solve hands the whole matrix to ScaLAPACK and solves for one right-hand side. */
void lu_rows(void)
{
    enum { TRIALS = 3 };
    int n = ORDER, square[2] = { n, n }, column[2] = { 1, n };
    double seconds[TRIALS], one = 1.0;
    for (int t = 0; t < TRIALS; t++) {
        int a = array(C_DBL, 2, square, NULL), b = array(C_DBL, 2, column, NULL);
        fill_diagonally_dominant(a, n);
        GA_Fill(b, &one);
        GA_Sync();
        double start = now();
        GA_Lu_solve('N', a, b);
        seconds[t] = bench_max(now() - start);
        double x = bench_rank == 0 ? element(b, 0, 0) * 2 * n : 1.0;
        if (x < 0.98 || x > 1.0) bench_failed("lu", x, 0.999);
        GA_Sync();
        GA_Destroy(a);
        GA_Destroy(b);
    }
    row("lu", "4096", "GFLOP/s", summary(seconds, TRIALS), 2.0 / 3.0 * n * (double)n * n);
}
