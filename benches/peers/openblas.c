/* openblas [out=FILE.csv] [threads=2] [trials=3] [group ...]: dgemm and dgetrf on the threads of one
 * process, nothing else running in it.
 */
#include "lu_matrix.h"
#include <stdio.h>
#include <stdlib.h>

extern void openblas_set_num_threads(int threads);
extern void dgemm_(const char *transpose_a, const char *transpose_b, const int *m, const int *n, const int *k,
                   const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
                   const double *beta, double *c, const int *ldc);
extern void dgemv_(const char *transpose, const int *m, const int *n, const double *alpha, const double *a, const int *lda,
                   const double *x, const int *incx, const double *beta, double *y, const int *incy);
extern void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
extern void dgetrs_(const char *transpose, const int *n, const int *columns, const double *a, const int *lda,
                    const int *pivots, double *b, const int *ldb, int *info);

#define MOST_TRIALS 60
static int trials;

typedef struct {
    int n;
    double *a, *b, *c;
} product_t;

static void multiply(void *context)
{
    product_t *p = context;
    double one = 1, zero = 0;
    dgemm_("N", "N", &p->n, &p->n, &p->n, &one, p->a, &p->n, p->b, &p->n, &zero, p->c, &p->n);
}

/* Wake the worker threads and let the clock rise: the first products run at half speed. */
static void warm_up(product_t *p)
{
    for (double start = now(); now() - start < 0.3;) multiply(p);
}

static void multiply_vector(void *context)
{
    product_t *p = context;
    double one = 1, zero = 0;
    int step = 1;
    dgemv_("T", &p->n, &p->n, &one, p->a, &p->n, p->b, &step, &zero, p->c, &step);
}

/* The matrix lies by rows, as the library's does. */
static void matvec_row(void)
{
    size_t n = 8192, elements = n * n;
    product_t p = { (int)n, pages(elements * 8), pages(n * 8), pages(n * 8) };
    for (size_t e = 0; e < elements; e++) p.a[e] = 1;
    for (size_t e = 0; e < n; e++) p.b[e] = 2;
    for (double start = now(); now() - start < 0.3;) multiply_vector(&p);
    row("matvec", "8192", "GB/s", measure_alone(multiply_vector, NULL, &p), 8.0 * (double)elements);
    free(p.a);
    free(p.b);
    free(p.c);
}

static void matmul_rows(void)
{
    for (size_t k = 0; k < COUNT(MATMUL); k++) {
        size_t n = (size_t)MATMUL[k], elements = n * n;
        product_t p = { MATMUL[k], pages(elements * 8), pages(elements * 8), pages(elements * 8) };
        for (size_t e = 0; e < elements; e++) {
            p.a[e] = lu_element((long)e, 0, 1);
            p.b[e] = lu_element((long)e, 1, 2);
        }
        warm_up(&p);
        char shape[16];
        snprintf(shape, sizeof shape, "%d", MATMUL[k]);
        row("matmul", shape, "GFLOP/s", measure_alone(multiply, NULL, &p), 2.0 * (double)n * (double)elements);
        free(p.a);
        free(p.b);
        free(p.c);
    }
    matvec_row();
}

static void check(int n, const double *factors, const int *pivots)
{
    int one = 1, info;
    double *x = pages((size_t)n * 8), *ax = pages((size_t)n * 8), *row_sum = pages((size_t)n * 8);
    for (long i = 0; i < n; i++) x[i] = lu_right_hand_side(i, n);
    dgetrs_("N", &n, &one, factors, &n, pivots, x, &n, &info);
    for (long j = 0; j < n; j++)
        for (long i = 0; i < n; i++) {
            double a = lu_element(i, j, n);
            ax[i] += a * x[j];
            row_sum[i] += fabs(a);
        }
    double residual = lu_residual(n, ax, row_sum, x);
    if (!(residual < LU_PASSES)) bench_failed("dgetrf residual", residual, LU_PASSES);
    free(x);
    free(ax);
    free(row_sum);
}

static void lu_rows(void)
{
    int n = ORDER, info, *pivots = pages(ORDER * sizeof(int));
    double *a = pages((size_t)n * (size_t)n * 8), seconds[MOST_TRIALS];
    for (int t = 0; t < trials; t++) {
        for (long j = 0; j < n; j++)
            for (long i = 0; i < n; i++) a[j * n + i] = lu_element(i, j, n);
        double start = now();
        dgetrf_(&n, &n, a, &n, pivots, &info);
        seconds[t] = now() - start;
    }
    check(n, a, pivots);
    row("lu_factor", "4096", "GFLOP/s", summary(seconds, trials), lu_operations(n));
    free(a);
    free(pivots);
}

static void nobody(void) { }
static double same(double value) { return value; }

int main(int argc, char **argv)
{
    static const group_t groups[] = { { "matmul", matmul_rows }, { "lu", lu_rows } };
    bench_barrier = nobody;
    bench_max = same;
    trials = atoi(bench_option(argc, argv, "trials", "3"));
    if (trials < 1 || trials > MOST_TRIALS) trials = 3;
    openblas_set_num_threads(atoi(bench_option(argc, argv, "threads", "2")));
    bench_main(argc, argv, groups, COUNT(groups));
    return 0;
}
