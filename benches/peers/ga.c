/* mpirun -n 2 ga [out=FILE.csv] [group ...]: the rows of `limit` through Global Arrays.
 * The group `none` measures nothing: starting and ending it is what a job costs.
 */
#include "ga.h"
#include <stdio.h>

int array(int type, int axes, int *extent, int *chunk)
{
    char name[] = "peer";
    int handle = NGA_Create(type, axes, extent, name, chunk);
    if (!handle) GA_Error("cannot create an array of this many axes:", axes);
    return handle;
}

static double largest(double value)
{
    char max[] = "max";
    GA_Dgop(&value, 1, max);
    return value;
}

static void sync_all(void *context)
{
    (void)context;
    GA_Sync();
}

static void sync_rows(void)
{
    char shape[32];
    snprintf(shape, sizeof shape, "%d ranks", GA_Nnodes());
    stat_t s = measure_together(sync_all, NULL);
    row("sync", shape, "us", s, 1);
}

static void array_life(void *context)
{
    GA_Destroy(array(C_DBL, 2, context, NULL));
}

static void create_rows(void)
{
    int small[2] = { 64, 64 }, large[2] = { ORDER, ORDER };
    row("create_destroy", "64^2", "us", measure_together(array_life, small), 1);
    row("create_destroy", "4096^2", "us", measure_together(array_life, large), 1);
}

int main(int argc, char **argv)
{
    static const group_t groups[] = {
        { "element", element_rows }, { "contiguous", contiguous_rows }, { "strided", strided_rows },
        { "inflight", in_flight_rows }, { "random", random_rows }, { "counter", counter_rows }, { "remote", remote_rows },
        { "sync", sync_rows }, { "whole", whole_rows }, { "transpose", transpose_rows },
        { "matmul", matmul_rows }, { "lu", lu_rows }, { "create", create_rows },
        { "ghosts", ghost_rows },
    };
    MPI_Init(&argc, &argv);
    GA_Initialize();
    bench_rank = GA_Nodeid();
    bench_barrier = GA_Sync;
    bench_max = largest;
    if (!MA_init(C_DBL, 40 << 20, 40 << 20)) GA_Error("MA_init", 0);
    bench_main(argc, argv, groups, COUNT(groups));
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
