/* mpirun -n P jacobi [out=FILE.csv] [n=256]: sweeps of the 7-point Jacobi iteration on n^3 cells, as one writes them in C and
 * MPI. Each rank has a slab with one layer of halo; the halo travels while the planes that do not need it are swept.
 */
#include "bench.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define ROWS 32         /* of a tile: three planes of it and the one that is written fit the second-level cache */

static long n = 256, planes, row_cells, plane_cells;
static double *from, *to;
static int below, above, ranks;
static long sweeps;

static double largest(double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sweep_planes(long first, long last)
{
    for (long rows = 1; rows <= n; rows += ROWS)
        for (long k = first; k <= last; k++)
            for (long j = rows; j < rows + ROWS && j <= n; j++) {
                const double *restrict u = from + k * plane_cells + j * row_cells;
                double *restrict w = to + k * plane_cells + j * row_cells;
                for (long i = 1; i <= n; i++)
                    w[i] = (u[i - 1] + u[i + 1] + u[i - row_cells] + u[i + row_cells] + u[i - plane_cells] +
                            u[i + plane_cells]) * (1.0 / 6.0);
            }
}

static void sweep(void *context)
{
    (void)context;
    MPI_Request requests[4];
    int count = (int)plane_cells;
    MPI_Irecv(from, count, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(from + (planes + 1) * plane_cells, count, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(from + planes * plane_cells, count, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(from + plane_cells, count, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[3]);
    sweep_planes(2, planes - 1);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    sweep_planes(1, 1);
    if (planes > 1) sweep_planes(planes, planes);
    double *other = from;
    from = to;
    to = other;
    sweeps++;
}

/* The product of three sines, zero on the walls: each sweep multiplies it by cos(pi h). */
static double start(long i, long j, long k)
{
    double h = PI / (double)(n + 1);
    return sin((double)i * h) * sin((double)j * h) * sin((double)k * h);
}

static void check(void)
{
    double factor = pow(cos(PI / (double)(n + 1)), (double)sweeps), error = 0;
    for (long k = 1; k <= planes; k++)
        for (long j = 1; j <= n; j++)
            for (long i = 1; i <= n; i += 7) {
                double exact = factor * start(i, j, bench_rank * planes + k);
                error = fmax(error, fabs(from[k * plane_cells + j * row_cells + i] - exact));
            }
    if (!(error < 1e-12)) bench_failed("jacobi", error, 0);
}

static void stencil_rows(void)
{
    size_t bytes = (size_t)((planes + 2) * plane_cells) * 8;
    char shape[32];
    from = pages(bytes);
    to = pages(bytes);
    for (long k = 0; k < planes + 2; k++)
        for (long j = 1; j <= n; j++)
            for (long i = 1; i <= n; i++)
                from[k * plane_cells + j * row_cells + i] = start(i, j, bench_rank * planes + k);
    snprintf(shape, sizeof shape, "%ld^3 %d rank%s", n, ranks, ranks > 1 ? "s" : "");
    row("stencil", shape, "Mcell/s", measure_together(sweep, NULL), (double)n * (double)n * (double)n);
    check();
}

int main(int argc, char **argv)
{
    static const group_t groups[] = { { "stencil", stencil_rows } };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bench_barrier = barrier;
    bench_max = largest;
    n = atol(bench_option(argc, argv, "n", "256"));
    if (n < 1 || n % ranks) {
        if (bench_rank == 0) fprintf(stderr, "%ld planes cannot be shared equally by %d ranks\n", n, ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    planes = n / ranks;
    row_cells = n + 2;
    plane_cells = row_cells * (n + 2);
    below = bench_rank > 0 ? bench_rank - 1 : MPI_PROC_NULL;
    above = bench_rank + 1 < ranks ? bench_rank + 1 : MPI_PROC_NULL;
    bench_main(argc, argv, groups, COUNT(groups));
    MPI_Finalize();
    return 0;
}
