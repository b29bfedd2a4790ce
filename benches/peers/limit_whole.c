/* Loops over ORDER x ORDER arrays, each process on its half, a blocked transpose, and a copy of
 * as many cells as a stencil has. The compiler sees plain loops; what it does for memcpy and
 * memset is its library's.
 */
#include "limit.h"
#include <string.h>

#define TILE 32

static double *a, *b, *c;       /* this process's halves */
static size_t n;
static volatile double alpha = 1.0000001, beta = 2.0, product;

static void fill(void *context)
{
    (void)context;
    double value = alpha;
    for (size_t i = 0; i < n; i++) a[i] = value;
    meet();
}

static void scale(void *context)
{
    (void)context;
    double factor = alpha;
    for (size_t i = 0; i < n; i++) a[i] *= factor;
    meet();
}

static void copy(void *context)
{
    (void)context;
    memcpy(b, a, n * 8);
    meet();
}

static void copy_all(void *context)
{
    (void)context;
    memcpy(matrices + (size_t)ORDER * ORDER, matrices, (size_t)ORDER * ORDER * 8);
}

static void add(void *context)
{
    (void)context;
    double x = alpha, y = beta;
    for (size_t i = 0; i < n; i++) c[i] = x * a[i] + y * b[i];
    meet();
}

static void dot(void *context)
{
    (void)context;
    double part[16] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i += 16)
        for (int k = 0; k < 16; k++) part[k] += a[i + k] * b[i + k];
    for (int k = 0; k < 16; k++) sum += part[k];
    product = bench_max(sum);
}

static void sum(void *context)
{
    (void)context;
    double part[16] = { 0 }, total = 0;
    for (size_t i = 0; i < n; i += 16)
        for (int k = 0; k < 16; k++) part[k] += a[i + k];
    for (int k = 0; k < 16; k++) total += part[k];
    product = bench_max(total);
}

static void axpby(void *context)
{
    (void)context;
    double x = beta / 4;
    for (size_t i = 0; i < n; i++) c[i] = x * a[i] + x * c[i];
    meet();
}

static void zip_with(void *context)
{
    (void)context;
    double x = beta / 4;
    for (size_t i = 0; i < n; i++) c[i] = x * c[i] + a[i];
    meet();
}

static void zip_with2(void *context)
{
    (void)context;
    double x = beta / 4;
    for (size_t i = 0; i < n; i++) c[i] = x * c[i] + a[i] * b[i];
    meet();
}

void whole_rows(void)
{
    static const struct { const char *name; bench_op op; double passes; } OPS[] = {
        { "fill", fill, 1 }, { "scale", scale, 2 }, { "copy", copy, 2 }, { "add", add, 3 }, { "dot", dot, 2 },
        { "sum", sum, 1 }, { "axpby", axpby, 3 }, { "zip_with", zip_with, 3 }, { "zip_with2", zip_with2, 4 },
    };
    size_t elements = (size_t)ORDER * ORDER;
    n = elements / 2;
    a = matrices + (size_t)bench_rank * n;
    b = a + elements;
    c = b + elements;
    for (size_t o = 0; o < COUNT(OPS); o++) {
        stat_t s = measure_together(OPS[o].op, NULL);
        row(OPS[o].name, "4096^2", "GB/s", s, OPS[o].passes * 8.0 * (double)elements);
    }
}

/* to = from^T; each process writes its half of the rows. */
static void transpose(void *context)
{
    (void)context;
    const double *from = matrices;
    double *to = matrices + (size_t)ORDER * ORDER;
    size_t first = (size_t)bench_rank * ORDER / 2;
    for (size_t i = first; i < first + ORDER / 2; i += TILE)
        for (size_t j = 0; j < ORDER; j += TILE)
            for (size_t ii = i; ii < i + TILE; ii++)
                for (size_t jj = j; jj < j + TILE; jj++) to[ii * ORDER + jj] = from[jj * ORDER + ii];
    meet();
}

void transpose_rows(void)
{
    stat_t s = measure_together(transpose, NULL);
    row("transpose", "4096^2", "GB/s", s, 16.0 * ORDER * ORDER);
    row("copy_transposed", "4096^2", "GB/s", s, 16.0 * ORDER * ORDER);
}

/* A stencil cannot sweep faster than cells are read and written once. */
void stencil_rows(void)
{
    double cells = (double)ORDER * ORDER;   /* = 256^3 */
    n = (size_t)ORDER * ORDER / 2;
    a = matrices + (size_t)bench_rank * n;
    b = a + 2 * n;
    row("stencil", "256^3 2 ranks", "Mcell/s", measure_together(copy, NULL), cells);
    ALONE({ row("stencil", "256^3 1 rank", "Mcell/s", measure_alone(copy_all, NULL, NULL), cells); });
}
