/* Global Arrays as Debian builds it, through its C interface. */
#ifndef PEER_GA_H
#define PEER_GA_H
#include "bench.h"
#include <mpi.h>
#include <ga.h>
#include <macdecls.h>

#define OTHER 1         /* rank 0 measures, the patch is in rank 1's block */

/* A new array; `chunk` is the smallest block to cut along each axis, NULL leaves it to the library. */
int array(int type, int axes, int *extent, int *chunk);

/* Rank 0 measures, the others wait inside the library (and so make progress). */
#define ALONE(...) do { if (bench_rank == 0) { __VA_ARGS__ } GA_Sync(); } while (0)

void element_rows(void);
void contiguous_rows(void);
void strided_rows(void);
void in_flight_rows(void);
void random_rows(void);
void remote_rows(void);
void counter_rows(void);
void whole_rows(void);
void transpose_rows(void);
void matmul_rows(void);
void lu_rows(void);
void ghost_rows(void);
#endif
