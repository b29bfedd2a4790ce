/* mpirun -n P*Q scalapack [out=FILE.csv] grid=PxQ block=NB [trials=3]: pdgetrf of one matrix. */
#include "lu_matrix.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
extern void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
extern void Cblacs_gridexit(int context);
extern int numroc_(const int *n, const int *block, const int *process, const int *first, const int *processes);
extern void descinit_(int *descriptor, const int *rows, const int *columns, const int *row_block,
                      const int *column_block, const int *first_row, const int *first_column, const int *context,
                      const int *leading, int *info);
extern void pdgetrf_(const int *m, const int *n, double *a, const int *i, const int *j, const int *descriptor,
                     int *pivots, int *info);
extern void pdgetrs_(const char *transpose, const int *n, const int *columns, const double *a, const int *i,
                     const int *j, const int *descriptor, const int *pivots, double *b, const int *ib, const int *jb,
                     const int *descriptor_b, int *info);

#define MOST_TRIALS 60
static const int ZERO = 0, ONE = 1;
static int n = ORDER, block = 64, rows = 1, columns = 2, trials = 3;

/* This rank's part of the block-cyclic matrix. */
static int context, my_row, my_column, local_rows, local_columns, leading;
static int descriptor[9], descriptor_b[9];

static long global_row(int i)
{
    return ((long)(i / block) * rows + my_row) * block + i % block;
}

static long global_column(int j)
{
    return ((long)(j / block) * columns + my_column) * block + j % block;
}

static void lay_out(void)
{
    int info;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &my_row, &my_column);
    local_rows = numroc_(&n, &block, &my_row, &ZERO, &rows);
    local_columns = numroc_(&n, &block, &my_column, &ZERO, &columns);
    leading = local_rows > 1 ? local_rows : 1;
    descinit_(descriptor, &n, &n, &block, &block, &ZERO, &ZERO, &context, &leading, &info);
    descinit_(descriptor_b, &n, &ONE, &block, &block, &ZERO, &ZERO, &context, &leading, &info);
}

static double factor(double *a, int *pivots)
{
    int info;
    for (int j = 0; j < local_columns; j++)
        for (int i = 0; i < local_rows; i++)
            a[(long)j * leading + i] = lu_element(global_row(i), global_column(j), n);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    pdgetrf_(&n, &n, a, &ONE, &ONE, descriptor, pivots, &info);
    MPI_Barrier(MPI_COMM_WORLD);
    return now() - start;
}

static void check(const double *factors, const int *pivots)
{
    int info;
    size_t bytes = (size_t)n * 8;
    double *part = pages((size_t)leading * 8), *x_part = pages(bytes), *x = pages(bytes);
    double *sums_part = pages(2 * bytes), *sums = pages(2 * bytes);
    if (my_column == 0)
        for (int i = 0; i < local_rows; i++) part[i] = lu_right_hand_side(global_row(i), n);
    pdgetrs_("N", &n, &ONE, factors, &ONE, &ONE, descriptor, pivots, part, &ONE, &ONE, descriptor_b, &info);
    if (my_column == 0)
        for (int i = 0; i < local_rows; i++) x_part[global_row(i)] = part[i];
    MPI_Allreduce(x_part, x, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int j = 0; j < local_columns; j++)
        for (int i = 0; i < local_rows; i++) {
            double a = lu_element(global_row(i), global_column(j), n);
            sums_part[global_row(i)] += a * x[global_column(j)];
            sums_part[n + global_row(i)] += fabs(a);
        }
    MPI_Allreduce(sums_part, sums, 2 * n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double residual = lu_residual(n, sums, sums + n, x);
    if (bench_rank == 0 && !(residual < LU_PASSES)) bench_failed("pdgetrf residual", residual, LU_PASSES);
    free(part);
    free(x_part);
    free(x);
    free(sums_part);
    free(sums);
}

static void lu_rows(void)
{
    double *a = pages((size_t)leading * (size_t)(local_columns + 1) * 8), seconds[MOST_TRIALS];
    int *pivots = pages((size_t)(local_rows + block) * sizeof(int));
    for (int t = 0; t < trials; t++) seconds[t] = factor(a, pivots);
    check(a, pivots);
    row("lu_factor", "4096", "GFLOP/s", summary(seconds, trials), lu_operations(n));
    free(a);
    free(pivots);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const group_t groups[] = { { "lu", lu_rows } };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
    bench_barrier = barrier;
    if (sscanf(bench_option(argc, argv, "grid", "1x2"), "%dx%d", &rows, &columns) != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    block = atoi(bench_option(argc, argv, "block", "64"));
    trials = atoi(bench_option(argc, argv, "trials", "3"));
    if (block < 1 || trials < 1 || trials > MOST_TRIALS) MPI_Abort(MPI_COMM_WORLD, 2);
    lay_out();
    bench_main(argc, argv, groups, COUNT(groups));
    Cblacs_gridexit(context);
    MPI_Finalize();
    return 0;
}
