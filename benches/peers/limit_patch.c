/* Elements and patches of the other process's half: load, store, memcpy, y += a x. */
#include "limit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Single elements of a two-dimensional block at random subscripts. */
typedef struct {
    double *block;
    size_t columns;
    subscripts_t seed;
    double sum;
} element_t;

static void store(void *context)
{
    element_t *e = context;
    subscripts_t at = e->seed;
    size_t i, j;
    for (int k = 0; k < SUBSCRIPTS; k++) {
        next_subscript(&at, &i, &j);
        e->block[i * e->columns + j] = 1.5;
    }
}

static void load(void *context)
{
    element_t *e = context;
    subscripts_t at = e->seed;
    size_t i, j;
    double sum = 0;
    for (int k = 0; k < SUBSCRIPTS; k++) {
        next_subscript(&at, &i, &j);
        sum += e->block[i * e->columns + j];
    }
    e->sum += sum;
}

void element_rows(void)
{
    ALONE({
        for (size_t b = 0; b < COUNT(BLOCKS); b++) {
            element_t e = { (double *)OTHERS, (size_t)1 << BLOCKS[b].column_bits,
                            { 1, BLOCKS[b].row_bits, BLOCKS[b].column_bits }, 0 };
            stat_t s = measure_alone(store, NULL, &e), l = measure_alone(load, NULL, &e);
            row("store", BLOCKS[b].name, "ns", s, SUBSCRIPTS);
            row("load", BLOCKS[b].name, "ns", l, SUBSCRIPTS);
            row("put_small", BLOCKS[b].name, "ns", s, SUBSCRIPTS);
            row("get_small", BLOCKS[b].name, "ns", l, SUBSCRIPTS);
        }
    });
}

typedef struct {
    char *remote, *local;
    size_t bytes, chunk, stride;
    double factor;
} patch_t;

static void put(void *context)
{
    patch_t *p = context;
    memcpy(p->remote, p->local, p->bytes);
    COMPILER_BARRIER();
}

static void get(void *context)
{
    patch_t *p = context;
    memcpy(p->local, p->remote, p->bytes);
    COMPILER_BARRIER();
}

static inline void add_scaled(double *restrict y, const double *restrict x, size_t n, double a)
{
    for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void accumulate(void *context)
{
    patch_t *p = context;
    add_scaled((double *)p->remote, (double *)p->local, p->bytes / 8, p->factor);
    COMPILER_BARRIER();
}

void contiguous_rows(void)
{
    char *local = pages(HALF);
    static const struct { const char *name; bench_op op; } OPS[] = {
        { "put", put }, { "get", get }, { "accumulate", accumulate },
    };
    ALONE({
        for (size_t o = 0; o < COUNT(OPS); o++)
            for (size_t k = 0; k < COUNT(CONTIGUOUS); k++) {
                patch_t p = { OTHERS, local, CONTIGUOUS[k], 0, 0, 0.5 };
                row(OPS[o].name, size_name(p.bytes), "GB/s", measure_alone(OPS[o].op, NULL, &p), (double)p.bytes);
            }
    });
    free(local);
}

static void put_strided(void *context)
{
    patch_t *p = context;
    for (size_t r = 0; r < p->bytes / p->chunk; r++)
        memcpy(p->remote + r * p->stride, p->local + r * p->chunk, p->chunk);
    COMPILER_BARRIER();
}

static void get_strided(void *context)
{
    patch_t *p = context;
    for (size_t r = 0; r < p->bytes / p->chunk; r++)
        memcpy(p->local + r * p->chunk, p->remote + r * p->stride, p->chunk);
    COMPILER_BARRIER();
}

static void accumulate_strided(void *context)
{
    patch_t *p = context;
    for (size_t r = 0; r < p->bytes / p->chunk; r++)
        add_scaled((double *)(p->remote + r * p->stride), (double *)(p->local + r * p->chunk), p->chunk / 8, p->factor);
    COMPILER_BARRIER();
}

/* A quarter of each row of a two-dimensional block: chunks four chunk lengths apart. */
void strided_rows(void)
{
    char *local = pages(16 * MIB);
    static const struct { const char *name; bench_op op; } OPS[] = {
        { "put_strided", put_strided }, { "get_strided", get_strided }, { "accumulate_strided", accumulate_strided },
    };
    ALONE({
        for (size_t o = 0; o < COUNT(OPS); o++)
            for (size_t t = 0; t < COUNT(STRIDED); t++)
                for (size_t c = 0; c < COUNT(CHUNKS); c++) {
                    patch_t p = { OTHERS + CHUNKS[c], local, STRIDED[t], CHUNKS[c], 4 * CHUNKS[c], 0.5 };
                    char shape[64];
                    snprintf(shape, sizeof shape, "%s/%zuB", size_name(p.bytes), p.chunk);
                    row(OPS[o].name, shape, "GB/s", measure_alone(OPS[o].op, NULL, &p), (double)p.bytes);
                }
    });
    free(local);
}

static void put_in_flight(void *context)
{
    patch_t *p = context;
    for (int k = 0; k < IN_FLIGHT; k++) {
        memcpy(p->remote + 8 * k, p->local + 8 * k, 8);
        COMPILER_BARRIER();
    }
}

void in_flight_rows(void)
{
    char *local = pages(IN_FLIGHT * 8);
    ALONE({
        patch_t p = { OTHERS, local, 0, 0, 0, 0 };
        row("put_nb", "64x8B", "M/s", measure_alone(put_in_flight, NULL, &p), IN_FLIGHT);
    });
    free(local);
}

/* Gather, scatter and scatter-accumulate over the whole of one ORDER x ORDER array. */
typedef struct {
    double *array, *values, factor;
    uint32_t *at;
} list_t;

static void scatter(void *context)
{
    list_t *l = context;
    for (int k = 0; k < LISTED; k++) l->array[l->at[k]] = l->values[k];
}

static void gather(void *context)
{
    list_t *l = context;
    for (int k = 0; k < LISTED; k++) l->values[k] = l->array[l->at[k]];
}

static void scatter_accumulate(void *context)
{
    list_t *l = context;
    for (int k = 0; k < LISTED; k++) l->array[l->at[k]] += l->factor * l->values[k];
}

void random_rows(void)
{
    list_t l = { matrices, pages(LISTED * 8), 0.5, pages(LISTED * sizeof(uint32_t)) };
    for (int k = 0; k < LISTED; k++) l.at[k] = (uint32_t)(random64() % ((size_t)ORDER * ORDER));
    ALONE({
        row("scatter", "1e5", "M/s", measure_alone(scatter, NULL, &l), LISTED);
        row("gather", "1e5", "M/s", measure_alone(gather, NULL, &l), LISTED);
        row("scatter_accumulate", "1e5", "M/s", measure_alone(scatter_accumulate, NULL, &l), LISTED);
    });
    free(l.values);
    free(l.at);
}
