/* mpirun -n 2 rma [out=FILE.csv] [group ...]: the rows of `limit` through MPI-3 one-sided calls.
 * The group `none` measures nothing: starting and ending it is what a job costs.
 */
#include "rma.h"
#include <stdio.h>
#include <string.h>

window_t window_new(size_t bytes)
{
    window_t w;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.base, &w.handle);
    memset(w.base, 0, bytes);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w.handle);
    MPI_Win_sync(w.handle);
    MPI_Barrier(MPI_COMM_WORLD);
    return w;
}

void window_free(window_t *w)
{
    MPI_Win_unlock_all(w->handle);
    MPI_Win_free(&w->handle);
}

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static double largest(double value)
{
    double max;
    MPI_Allreduce(&value, &max, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return max;
}

static long increments;

static void increment(void *context)
{
    window_t *w = context;
    long one = 1, before;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, OTHER, 0, MPI_SUM, w->handle);
    MPI_Win_flush(OTHER, w->handle);
    increments++;
}

static void counter_rows(void)
{
    window_t w = window_new(4096);
    ALONE({ row("read_inc", "one rank", "ns", measure_alone(increment, NULL, &w), 1); });
    stat_t s = measure_together(increment, &w);
    row("read_inc", "two ranks", "ns", s, 1);
    long total, zero = 0, value;
    MPI_Allreduce(&increments, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    ALONE({
        MPI_Fetch_and_op(&zero, &value, MPI_LONG, OTHER, 0, MPI_NO_OP, w.handle);
        MPI_Win_flush(OTHER, w.handle);
        if (value != total) bench_failed("counter", (double)value, (double)total);
    });
    window_free(&w);
}

static void complete_all(void *context)
{
    window_t *w = context;
    MPI_Win_flush_all(w->handle);
    MPI_Win_sync(w->handle);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sync_rows(void)
{
    int ranks;
    char shape[32];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(shape, sizeof shape, "%d ranks", ranks);
    window_t w = window_new(4096);
    stat_t s = measure_together(complete_all, &w);
    row("sync", shape, "us", s, 1);
    window_free(&w);
}

static void window_life(void *context)
{
    MPI_Win w;
    void *base;
    MPI_Win_allocate(*(MPI_Aint *)context, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
    MPI_Win_free(&w);
}

static void create_rows(void)
{
    MPI_Aint small = 64 * 64 * 4, large = (MPI_Aint)ORDER * ORDER * 4;    /* each rank's half */
    row("create_destroy", "64^2", "us", measure_together(window_life, &small), 1);
    row("create_destroy", "4096^2", "us", measure_together(window_life, &large), 1);
}

int main(int argc, char **argv)
{
    static const group_t groups[] = {
        { "element", element_rows }, { "contiguous", contiguous_rows }, { "strided", strided_rows },
        { "inflight", in_flight_rows }, { "random", random_rows }, { "counter", counter_rows }, { "message", message_rows }, { "active", active_rows }, { "remote", remote_rows },
        { "sync", sync_rows }, { "create", create_rows },
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
    bench_barrier = barrier;
    bench_max = largest;
    bench_main(argc, argv, groups, COUNT(groups));
    MPI_Finalize();
    return 0;
}
