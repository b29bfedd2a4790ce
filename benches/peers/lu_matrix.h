/* The matrix and right-hand side of the LU rows: uniform in [-0.5, 0.5), a function of the
 * subscripts alone, so that every rank makes its own part. And HPL's scaled residual.
 */
#ifndef LU_MATRIX_H
#define LU_MATRIX_H
#include "bench.h"
#include <math.h>

#define LU_PASSES 16.0          /* HPL's threshold */

static inline double lu_element(long i, long j, long n)
{
    uint64_t z = (uint64_t)(i * n + j) + 8 * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53 - 0.5;
}

static inline double lu_right_hand_side(long i, long n)
{
    return lu_element(i, n, n + 1);
}

static inline double lu_operations(long n)
{
    return 2.0 / 3.0 * (double)n * (double)n * (double)n;
}

/* max|Ax - b| / (eps (|A| max|x| + max|b|) n), from the products and the sums of |a_ij| of each row. */
static inline double lu_residual(long n, const double *ax, const double *row_sum, const double *x)
{
    double norm_a = 0, norm_r = 0, norm_x = 0, norm_b = 0;
    for (long i = 0; i < n; i++) {
        double b = lu_right_hand_side(i, n);
        norm_a = fmax(norm_a, row_sum[i]);
        norm_r = fmax(norm_r, fabs(ax[i] - b));
        norm_x = fmax(norm_x, fabs(x[i]));
        norm_b = fmax(norm_b, fabs(b));
    }
    return norm_r / (0x1p-53 * (norm_a * norm_x + norm_b) * (double)n);
}
#endif
