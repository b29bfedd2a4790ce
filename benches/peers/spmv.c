/* mpirun -n P spmv [out=FILE.csv] [n=1000]: products of a sparse matrix and a vector, as one writes them in C and MPI: the 5-point
 * Laplacian of n^2 points, and n^2 rows of ten random entries. Each rank has a block of rows, split as PETSc does: entries of own columns,
 * and the others, whose elements of the vector come in one message from each owner while the own ones are multiplied.
 */
#include "bench.h"
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 10         /* entries of a row */

static long side = 1000, n, first, rows;
static int ranks;

/* CSR; `off` has only the rows that are not empty, numbered by `off_rows`. */
typedef struct {
    int count, *starts, *columns;
    double *values;
} csr_t;

static csr_t own, off;
static int *off_rows;
static double *x, *y, *halo, *packed;
static int *wanted_from, *sent_to, *wanted_at, *sent_at, *sent;
static MPI_Request *requests;
static MPI_Status *statuses;

static double largest(double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static long begin_of(int rank)
{
    return n / ranks * rank + (rank < n % ranks ? rank : n % ranks);
}

static int owner_of(long column)
{
    int rank = (int)(column / (n / ranks + 1));
    while (rank + 1 < ranks && begin_of(rank + 1) <= column) rank++;
    return rank;
}

static int laplacian(long row, long *columns, double *values)
{
    long i = row / side, j = row % side;
    int k = 0;
    if (i > 0) columns[k] = row - side, values[k++] = -1;
    if (j > 0) columns[k] = row - 1, values[k++] = -1;
    columns[k] = row, values[k++] = 4;
    if (j + 1 < side) columns[k] = row + 1, values[k++] = -1;
    if (i + 1 < side) columns[k] = row + side, values[k++] = -1;
    return k;
}

static int ascending(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static int scattered(long row, long *columns, double *values)
{
    for (int k = 0; k < MOST; k++) {
        uint64_t z = ((uint64_t)row * MOST + (uint64_t)k + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        columns[k] = (long)((z ^ (z >> 31)) % (uint64_t)n);
        values[k] = 1.0 / (double)(k + 1);
    }
    qsort(columns, MOST, sizeof *columns, ascending);
    return MOST;
}

static double element(long i)
{
    return (double)(i % 1001) - 500.0;
}

static csr_t csr_of(long most_rows, long entries)
{
    return (csr_t){ 0, calloc((size_t)most_rows + 1, sizeof(int)), malloc((size_t)entries * sizeof(int)), pages((size_t)entries * 8) };
}

static int place_of(const long *list, long len, long column)
{
    long low = 0, high = len;
    while (low < high) {
        long middle = (low + high) / 2;
        if (list[middle] < column) low = middle + 1;
        else high = middle;
    }
    return (int)low;
}

static void build(int (*row_of)(long, long *, double *))
{
    long columns[MOST], *foreign, needed = 0, foreign_count = 0, own_count = 0;
    double values[MOST];
    for (long r = 0; r < rows; r++) {
        int len = row_of(first + r, columns, values);
        for (int k = 0; k < len; k++) {
            if (columns[k] < first || columns[k] >= first + rows) foreign_count++;
            else own_count++;
        }
    }
    foreign = malloc((size_t)(foreign_count + 1) * sizeof *foreign);
    for (long r = 0; r < rows; r++) {
        int len = row_of(first + r, columns, values);
        for (int k = 0; k < len; k++)
            if (columns[k] < first || columns[k] >= first + rows) foreign[needed++] = columns[k];
    }
    qsort(foreign, (size_t)needed, sizeof *foreign, ascending);
    long distinct = 0;
    for (long k = 0; k < needed; k++)
        if (distinct == 0 || foreign[distinct - 1] != foreign[k]) foreign[distinct++] = foreign[k];
    own = csr_of(rows, own_count);
    off = csr_of(rows, foreign_count + 1);
    off_rows = malloc((size_t)(rows + 1) * sizeof(int));
    int own_at = 0, off_at = 0;
    for (long r = 0; r < rows; r++) {
        int len = row_of(first + r, columns, values), before = off_at;
        for (int k = 0; k < len; k++) {
            if (columns[k] >= first && columns[k] < first + rows) {
                own.columns[own_at] = (int)(columns[k] - first);
                own.values[own_at++] = values[k];
            } else {
                off.columns[off_at] = place_of(foreign, distinct, columns[k]);
                off.values[off_at++] = values[k];
            }
        }
        own.starts[++own.count] = own_at;
        if (off_at > before) {
            off_rows[off.count] = (int)r;
            off.starts[++off.count] = off_at;
        }
    }
    /* Who needs what of whom. */
    wanted_from = calloc((size_t)ranks, sizeof(int));
    sent_to = calloc((size_t)ranks, sizeof(int));
    wanted_at = calloc((size_t)ranks + 1, sizeof(int));
    sent_at = calloc((size_t)ranks + 1, sizeof(int));
    for (long k = 0; k < distinct; k++) wanted_from[owner_of(foreign[k])]++;
    MPI_Alltoall(wanted_from, 1, MPI_INT, sent_to, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; rank++) {
        wanted_at[rank + 1] = wanted_at[rank] + wanted_from[rank];
        sent_at[rank + 1] = sent_at[rank] + sent_to[rank];
    }
    long *asked = malloc((size_t)(sent_at[ranks] + 1) * sizeof *asked);
    MPI_Alltoallv(foreign, wanted_from, wanted_at, MPI_LONG, asked, sent_to, sent_at, MPI_LONG, MPI_COMM_WORLD);
    sent = malloc((size_t)(sent_at[ranks] + 1) * sizeof *sent);
    for (int k = 0; k < sent_at[ranks]; k++) sent[k] = (int)(asked[k] - first);
    free(asked);
    free(foreign);
    x = pages((size_t)rows * 8);
    y = pages((size_t)rows * 8);
    halo = pages((size_t)(distinct + 1) * 8);
    packed = pages((size_t)(sent_at[ranks] + 1) * 8);
    requests = malloc(2 * (size_t)ranks * sizeof *requests);
    statuses = malloc(2 * (size_t)ranks * sizeof *statuses);
    for (long r = 0; r < rows; r++) x[r] = element(first + r);
}

static void product(void *context)
{
    (void)context;
    int count = 0;
    for (int rank = 0; rank < ranks; rank++)
        if (wanted_from[rank])
            MPI_Irecv(halo + wanted_at[rank], wanted_from[rank], MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[count++]);
    for (int k = 0; k < sent_at[ranks]; k++) packed[k] = x[sent[k]];
    for (int rank = 0; rank < ranks; rank++)
        if (sent_to[rank])
            MPI_Isend(packed + sent_at[rank], sent_to[rank], MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[count++]);
    for (int r = 0; r < own.count; r++) {
        double sum = 0;
        for (int k = own.starts[r]; k < own.starts[r + 1]; k++) sum += own.values[k] * x[own.columns[k]];
        y[r] = sum;
    }
    MPI_Waitall(count, requests, statuses);
    for (int r = 0; r < off.count; r++) {
        double sum = 0;
        for (int k = off.starts[r]; k < off.starts[r + 1]; k++) sum += off.values[k] * halo[off.columns[k]];
        y[off_rows[r]] += sum;
    }
}

static void run(const char *name, int (*row_of)(long, long *, double *))
{
    long columns[MOST];
    double values[MOST];
    build(row_of);
    row("spmv", name, "ms", measure_together(product, NULL), 1);
    for (long r = 0; r < rows; r += 97) {
        int len = row_of(first + r, columns, values);
        double sum = 0;
        for (int k = 0; k < len; k++) sum += values[k] * element(columns[k]);
        if (!(fabs(sum - y[r]) < 1e-9)) bench_failed(name, y[r], sum);
    }
}

static void laplacian_rows(void)
{
    run("laplacian", laplacian);
}

static void random_rows(void)
{
    run("random", scattered);
}

int main(int argc, char **argv)
{
    static const group_t groups[] = { { "laplacian", laplacian_rows }, { "random", random_rows } };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bench_barrier = barrier;
    bench_max = largest;
    side = atol(bench_option(argc, argv, "n", "1000"));
    n = side * side;
    first = begin_of(bench_rank);
    rows = begin_of(bench_rank + 1) - first;
    bench_main(argc, argv, groups, COUNT(groups));
    MPI_Finalize();
    return 0;
}
