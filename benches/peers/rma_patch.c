/* Elements, patches and lists of elements of the other rank's window. */
#include "rma.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    window_t window;
    double *local;
    int count;                  /* of MPI_DOUBLEs */
    MPI_Aint at;                /* byte offset in the target's window */
    MPI_Datatype layout;        /* of the target, strided rows only */
    subscripts_t seed;
} transfer_t;

static void flush(void *context)
{
    MPI_Win_flush(OTHER, ((transfer_t *)context)->window.handle);
}

static void put_random(void *context)
{
    transfer_t *t = context;
    subscripts_t at = t->seed;
    size_t i, j;
    for (int k = 0; k < SUBSCRIPTS; k++) {
        next_subscript(&at, &i, &j);
        MPI_Aint offset = (MPI_Aint)(((i << at.column_bits) + j) * 8);
        MPI_Put(t->local, 1, MPI_DOUBLE, OTHER, offset, 1, MPI_DOUBLE, t->window.handle);
        MPI_Win_flush(OTHER, t->window.handle);
    }
}

static void get_random(void *context)
{
    transfer_t *t = context;
    subscripts_t at = t->seed;
    size_t i, j;
    for (int k = 0; k < SUBSCRIPTS; k++) {
        next_subscript(&at, &i, &j);
        MPI_Aint offset = (MPI_Aint)(((i << at.column_bits) + j) * 8);
        MPI_Get(t->local, 1, MPI_DOUBLE, OTHER, offset, 1, MPI_DOUBLE, t->window.handle);
        MPI_Win_flush(OTHER, t->window.handle);
    }
}

void element_rows(void)
{
    transfer_t t = { .window = window_new(64 * MIB), .local = pages(4096) };
    ALONE({
        for (size_t b = 0; b < COUNT(BLOCKS); b++) {
            t.seed = (subscripts_t){ 1, BLOCKS[b].row_bits, BLOCKS[b].column_bits };
            row("put_small", BLOCKS[b].name, "ns", measure_alone(put_random, NULL, &t), SUBSCRIPTS);
            row("get_small", BLOCKS[b].name, "ns", measure_alone(get_random, NULL, &t), SUBSCRIPTS);
        }
    });
    window_free(&t.window);
    free(t.local);
}

static void put(void *context)
{
    transfer_t *t = context;
    MPI_Put(t->local, t->count, MPI_DOUBLE, OTHER, 0, t->count, MPI_DOUBLE, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void get(void *context)
{
    transfer_t *t = context;
    MPI_Get(t->local, t->count, MPI_DOUBLE, OTHER, 0, t->count, MPI_DOUBLE, t->window.handle);
    MPI_Win_flush(OTHER, t->window.handle);
}

static void accumulate(void *context)
{
    transfer_t *t = context;
    MPI_Accumulate(t->local, t->count, MPI_DOUBLE, OTHER, 0, t->count, MPI_DOUBLE, MPI_SUM, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void check_round_trip(transfer_t *t, int count)
{
    t->count = count;
    for (int k = 0; k < count; k++) t->local[k] = k + 1;
    put(t);
    flush(t);
    for (int k = 0; k < count; k++) t->local[k] = 0;
    get(t);
    for (int k = 0; k < count; k++)
        if (t->local[k] != k + 1) {
            bench_failed("put and get", t->local[k], k + 1);
            break;
        }
}

void contiguous_rows(void)
{
    transfer_t t = { .window = window_new(64 * MIB), .local = pages(64 * MIB) };
    static const struct { const char *name; bench_op op, finish; } OPS[] = {
        { "put", put, flush }, { "get", get, NULL }, { "accumulate", accumulate, flush },
    };
    ALONE({
        check_round_trip(&t, 8 << 20);
        for (size_t o = 0; o < COUNT(OPS); o++)
            for (size_t k = 0; k < COUNT(CONTIGUOUS); k++) {
                t.count = (int)(CONTIGUOUS[k] / 8);
                row(OPS[o].name, size_name(CONTIGUOUS[k]), "GB/s", measure_alone(OPS[o].op, OPS[o].finish, &t),
                    (double)CONTIGUOUS[k]);
            }
    });
    window_free(&t.window);
    free(t.local);
}

static void put_strided(void *context)
{
    transfer_t *t = context;
    MPI_Put(t->local, t->count, MPI_DOUBLE, OTHER, t->at, 1, t->layout, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void get_strided(void *context)
{
    transfer_t *t = context;
    MPI_Get(t->local, t->count, MPI_DOUBLE, OTHER, t->at, 1, t->layout, t->window.handle);
    MPI_Win_flush(OTHER, t->window.handle);
}

static void accumulate_strided(void *context)
{
    transfer_t *t = context;
    MPI_Accumulate(t->local, t->count, MPI_DOUBLE, OTHER, t->at, 1, t->layout, MPI_SUM, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

void strided_rows(void)
{
    transfer_t t = { .window = window_new(64 * MIB), .local = pages(16 * MIB) };
    static const struct { const char *name; bench_op op, finish; } OPS[] = {
        { "put_strided", put_strided, flush }, { "get_strided", get_strided, NULL },
        { "accumulate_strided", accumulate_strided, flush },
    };
    ALONE({
        for (size_t s = 0; s < COUNT(STRIDED); s++)
            for (size_t c = 0; c < COUNT(CHUNKS); c++) {
                int chunk = (int)(CHUNKS[c] / 8);
                char shape[64];
                snprintf(shape, sizeof shape, "%s/%zuB", size_name(STRIDED[s]), CHUNKS[c]);
                MPI_Type_vector((int)(STRIDED[s] / CHUNKS[c]), chunk, 4 * chunk, MPI_DOUBLE, &t.layout);
                MPI_Type_commit(&t.layout);
                t.count = (int)(STRIDED[s] / 8);
                t.at = (MPI_Aint)CHUNKS[c];
                for (size_t o = 0; o < COUNT(OPS); o++)
                    row(OPS[o].name, shape, "GB/s", measure_alone(OPS[o].op, OPS[o].finish, &t), (double)STRIDED[s]);
                MPI_Type_free(&t.layout);
            }
    });
    window_free(&t.window);
    free(t.local);
}

static void put_in_flight(void *context)
{
    transfer_t *t = context;
    MPI_Request request[IN_FLIGHT];
    MPI_Status status[IN_FLIGHT];
    for (int k = 0; k < IN_FLIGHT; k++)
        MPI_Rput(t->local + k, 1, MPI_DOUBLE, OTHER, (MPI_Aint)k * 8, 1, MPI_DOUBLE, t->window.handle, &request[k]);
    MPI_Waitall(IN_FLIGHT, request, status);
}

void in_flight_rows(void)
{
    transfer_t t = { .window = window_new(4096), .local = pages(4096) };
    ALONE({ row("put_nb", "64x8B", "M/s", measure_alone(put_in_flight, flush, &t), IN_FLIGHT); });
    window_free(&t.window);
    free(t.local);
}

/* Random elements of two ranks' windows, as of one array cut in two. */
typedef struct {
    window_t window;
    double *values;
    int *rank;
    MPI_Aint *at;
} list_t;

static void scatter(void *context)
{
    list_t *l = context;
    for (int k = 0; k < LISTED; k++)
        MPI_Put(l->values + k, 1, MPI_DOUBLE, l->rank[k], l->at[k], 1, MPI_DOUBLE, l->window.handle);
    MPI_Win_flush_all(l->window.handle);
}

static void gather(void *context)
{
    list_t *l = context;
    for (int k = 0; k < LISTED; k++)
        MPI_Get(l->values + k, 1, MPI_DOUBLE, l->rank[k], l->at[k], 1, MPI_DOUBLE, l->window.handle);
    MPI_Win_flush_all(l->window.handle);
}

static void scatter_accumulate(void *context)
{
    list_t *l = context;
    for (int k = 0; k < LISTED; k++)
        MPI_Accumulate(l->values + k, 1, MPI_DOUBLE, l->rank[k], l->at[k], 1, MPI_DOUBLE, MPI_SUM, l->window.handle);
    MPI_Win_flush_all(l->window.handle);
}

void random_rows(void)
{
    size_t half = (size_t)ORDER * ORDER / 2;
    list_t l = { window_new(half * 8), pages(LISTED * 8), pages(LISTED * sizeof(int)), pages(LISTED * sizeof(MPI_Aint)) };
    for (int k = 0; k < LISTED; k++) {
        size_t at = random64() % (2 * half);
        l.rank[k] = at >= half;
        l.at[k] = (MPI_Aint)(at % half * 8);
    }
    ALONE({
        row("scatter", "1e5", "M/s", measure_alone(scatter, NULL, &l), LISTED);
        row("gather", "1e5", "M/s", measure_alone(gather, NULL, &l), LISTED);
        row("scatter_accumulate", "1e5", "M/s", measure_alone(scatter_accumulate, NULL, &l), LISTED);
    });
    window_free(&l.window);
    free(l.values);
    free(l.rank);
    free(l.at);
}
