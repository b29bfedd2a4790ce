/* mpirun -n P solvers ORDER RIGHT: ScaLAPACK's and ELPA's eigensolvers, Cholesky, LU and solves of the matrices of linalg.rs, one row of
 * processes. Prints a name and seconds for each, the second of two runs. "eigh" is the best of pdsyevd, pdsyevr and ELPA's two stages. */
#include <elpa/elpa.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
extern void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
extern int numroc_(const int *n, const int *block, const int *process, const int *first, const int *processes);
extern void descinit_(int *, const int *, const int *, const int *, const int *, const int *, const int *, const int *,
                      const int *, int *);
extern void pdsyevd_(const char *, const char *, const int *, double *, const int *, const int *, const int *, double *,
                     double *, const int *, const int *, const int *, double *, const int *, int *, const int *, int *);
extern void pdsyevr_(const char *, const char *, const char *, const int *, double *, const int *, const int *,
                     const int *, const double *, const double *, const int *, const int *, int *, int *, double *,
                     double *, const int *, const int *, const int *, double *, const int *, int *, const int *, int *);
extern void pdpotrf_(const char *, const int *, double *, const int *, const int *, const int *, int *);
extern void pdgetrf_(const int *, const int *, double *, const int *, const int *, const int *, int *, int *);
extern void pdgetrs_(const char *, const int *, const int *, const double *, const int *, const int *, const int *,
                     const int *, double *, const int *, const int *, const int *, int *);

static const int ZERO = 0, ONE = 1;
static int n, right, block = 64, rows = 1, columns, my_row, my_column, context, local, leading, info;
static int descriptor[9], descriptor_b[9], *pivots;
static double *a, *factors, *vectors, *values, *b;
static elpa_t elpa;

static double element(char which, long i, long j)
{
    double h = cos((double)i * j) + cos((double)(i + j));
    if (which == 'h')
        return h;
    if (which == 's')
        return h / n + (i == j ? 3 : 0);
    return sin((double)i * n + 3.0 * j * j) + (i == j);
}

static void fill(char which)
{
    for (int j = 0; j < local; j++) {
        long column = ((long)(j / block) * columns + my_column) * block + j % block;
        for (int i = 0; i < n; i++)
            a[(long)j * leading + i] = element(which, i, column);
    }
}

static int by_division(int lowest)
{
    (void)lowest;
    double asked;
    int whole, lwork = -1, lwhole = -1;
    pdsyevd_("V", "L", &n, a, &ONE, &ONE, descriptor, values, vectors, &ONE, &ONE, descriptor, &asked, &lwork, &whole,
             &lwhole, &info);
    /* The query of pdsyevd leaves out what pdormtr needs. */
    lwork = (int)asked + n * block + 4 * n * block, lwhole = whole;
    double *work = malloc(lwork * sizeof *work);
    int *ints = malloc(lwhole * sizeof *ints);
    pdsyevd_("V", "L", &n, a, &ONE, &ONE, descriptor, values, vectors, &ONE, &ONE, descriptor, work, &lwork, ints, &lwhole,
             &info);
    free(work), free(ints);
    return info;
}

static int by_representations(int lowest)
{
    double asked[3], zero = 0;
    int whole[3], lwork = -1, lwhole = -1, found, made;
    const char *range = lowest < n ? "I" : "A";
    pdsyevr_("V", range, "L", &n, a, &ONE, &ONE, descriptor, &zero, &zero, &ONE, &lowest, &found, &made, values, vectors,
             &ONE, &ONE, descriptor, asked, &lwork, whole, &lwhole, &info);
    lwork = (int)asked[0] + n, lwhole = whole[0];
    double *work = malloc(lwork * sizeof *work);
    int *ints = malloc(lwhole * sizeof *ints);
    pdsyevr_("V", range, "L", &n, a, &ONE, &ONE, descriptor, &zero, &zero, &ONE, &lowest, &found, &made, values, vectors,
             &ONE, &ONE, descriptor, work, &lwork, ints, &lwhole, &info);
    free(work), free(ints);
    return info;
}

static int by_elpa(int lowest)
{
    elpa_set(elpa, "nev", lowest, &info);
    elpa_eigenvectors(elpa, a, values, vectors, &info);
    return info;
}

static int cholesky(int unused)
{
    (void)unused;
    pdpotrf_("L", &n, a, &ONE, &ONE, descriptor, &info);
    return info;
}

static int lu(int unused)
{
    (void)unused;
    pdgetrf_(&n, &n, a, &ONE, &ONE, descriptor, pivots, &info);
    return info;
}

static int solve(int unused)
{
    (void)unused;
    pdgetrs_("N", &n, &right, factors, &ONE, &ONE, descriptor, pivots, b, &ONE, &ONE, descriptor_b, &info);
    return info;
}

static double seconds(const char *name, char matrix, int (*run)(int), int argument)
{
    double took = 0;
    for (int round = 0; round < 2; round++) {
        fill(matrix);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (run(argument) != 0) {
            fprintf(stderr, "%s: info %d\n", name, info);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        took = MPI_Wtime() - start;
    }
    if (my_column == 0)
        printf("%s %.6f\n", name, took);
    return took;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    n = argc > 1 ? atoi(argv[1]) : 1000, right = argc > 2 ? atoi(argv[2]) : 64;
    MPI_Comm_size(MPI_COMM_WORLD, &columns);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &my_row, &my_column);
    local = numroc_(&n, &block, &my_column, &ZERO, &columns), leading = n;
    descinit_(descriptor, &n, &n, &block, &block, &ZERO, &ZERO, &context, &leading, &info);
    descinit_(descriptor_b, &n, &right, &block, &block, &ZERO, &ZERO, &context, &leading, &info);
    size_t len = (size_t)leading * (local + block);
    a = malloc(len * sizeof *a), factors = malloc(len * sizeof *a), vectors = malloc(len * sizeof *a);
    values = malloc(n * sizeof *values), pivots = malloc((n + block) * sizeof *pivots);
    b = malloc((size_t)leading * (right + block) * sizeof *b);
    for (size_t i = 0; i < (size_t)leading * (right + block); i++)
        b[i] = 1;

    elpa_init(20211125);
    elpa = elpa_allocate(&info);
    elpa_set(elpa, "na", n, &info), elpa_set(elpa, "nev", n, &info), elpa_set(elpa, "nblk", block, &info);
    elpa_set(elpa, "local_nrows", n, &info), elpa_set(elpa, "local_ncols", local, &info);
    elpa_set(elpa, "mpi_comm_parent", MPI_Comm_c2f(MPI_COMM_WORLD), &info);
    elpa_set(elpa, "process_row", my_row, &info), elpa_set(elpa, "process_col", my_column, &info);
    if (elpa_setup(elpa) != ELPA_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    elpa_set(elpa, "solver", ELPA_SOLVER_2STAGE, &info);

    double best = seconds("pdsyevd", 'h', by_division, n);
    best = fmin(best, seconds("pdsyevr", 'h', by_representations, n));
    best = fmin(best, seconds("ELPA", 'h', by_elpa, n));
    double lowest = seconds("pdsyevr lowest", 'h', by_representations, n / 10);
    lowest = fmin(lowest, seconds("ELPA lowest", 'h', by_elpa, n / 10));
    if (my_column == 0)
        printf("eigh %.6f\nlowest tenth %.6f\n", best, lowest);
    seconds("cholesky", 's', cholesky, 0);
    double factored = seconds("lu", 'a', lu, 0);
    for (size_t i = 0; i < (size_t)leading * local; i++)
        factors[i] = a[i];
    double solved = seconds("solve", 'a', solve, 0);
    if (my_column == 0)
        printf("lu+solve %.6f\n", factored + solved);
    MPI_Finalize();
    return 0;
}
