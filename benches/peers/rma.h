/* MPI-3 one-sided operations in a passive epoch that lasts as long as the window. */
#ifndef RMA_H
#define RMA_H
#include "bench.h"
#include <mpi.h>

typedef struct {
    MPI_Win handle;
    char *base;
} window_t;

#define OTHER 1         /* rank 0 measures, its target is rank 1 */

window_t window_new(size_t bytes);
void window_free(window_t *window);

/* Rank 0 measures, the others wait inside MPI (and so make progress). */
#define ALONE(...) do { if (bench_rank == 0) { __VA_ARGS__ } MPI_Barrier(MPI_COMM_WORLD); } while (0)

void element_rows(void);
void contiguous_rows(void);
void strided_rows(void);
void in_flight_rows(void);
void random_rows(void);
void message_rows(void);
void active_rows(void);
void remote_rows(void);
#endif
