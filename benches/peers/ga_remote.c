/* What crosses from one node to another: small and large transfers, patches of short chunks, and
 * operations on a target that computes and never enters the library.
 */
#define _GNU_SOURCE
#include "ga.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int array, low[2], high[2], leading[1];
    int counter;                /* an array of longs, its second element is on rank 1 */
    double *local;
} patch_t;

/* One spares the library a scaled copy of the buffer: its best case. */
static double factor = 1.0;

/* Wait for what is under way, and keep the next operations under watch too. */
static void fence(void *context)
{
    (void)context;
    GA_Fence();
    GA_Init_fence();
}

static void put(void *context)
{
    patch_t *p = context;
    NGA_Put(p->array, p->low, p->high, p->local, p->leading);
}

static void put_flush(void *context)
{
    put(context);
    fence(NULL);
}

static void get(void *context)
{
    patch_t *p = context;
    NGA_Get(p->array, p->low, p->high, p->local, p->leading);
}

static void accumulate(void *context)
{
    patch_t *p = context;
    NGA_Acc(p->array, p->low, p->high, p->local, p->leading, &factor);
}

/* A sync of all ranks ends the watch over operations under way: these begin their own. */
static void put_watched(void *context)
{
    GA_Init_fence();
    put(context);
    GA_Fence();
}

static void accumulate_watched(void *context)
{
    GA_Init_fence();
    accumulate(context);
    GA_Fence();
}

static void increment(void *context)
{
    int element = 1;
    NGA_Read_inc(((patch_t *)context)->counter, &element, 1);
}

static void check(patch_t *p, int count)
{
    for (int k = 0; k < count; k++) p->local[k] = k + 1;
    put_flush(p);
    memset(p->local, 0, (size_t)count * 8);
    get(p);
    for (int k = 0; k < count; k++)
        if (p->local[k] != k + 1) {
            bench_failed("put and get", p->local[k], k + 1);
            break;
        }
}

static void contiguous(patch_t *p)
{
    static const struct { const char *name; bench_op op, finish; } OPS[] = {
        { "put", put, fence }, { "put_flush", put_flush, NULL }, { "get", get, NULL }, { "accumulate", accumulate, fence },
    };
    for (size_t k = 0; k < COUNT(REMOTE); k++) {
        p->high[0] = p->low[0] + (int)(REMOTE[k] / 8) - 1;
        check(p, (int)(REMOTE[k] / 8));
        for (size_t o = 0; o < COUNT(OPS); o++)
            row(OPS[o].name, size_name(REMOTE[k]), "us", measure_alone(OPS[o].op, OPS[o].finish, p), 1);
    }
}

/* The second quarter of each row. */
static void strided(patch_t *p, int chunk)
{
    static const struct { const char *name; bench_op op, finish; } OPS[] = {
        { "put_strided", put, fence }, { "get_strided", get, NULL }, { "accumulate_strided", accumulate, fence },
    };
    char shape[32];
    snprintf(shape, sizeof shape, "1MiB/%dB", 8 * chunk);
    p->low[1] = chunk;
    p->high[1] = 2 * chunk - 1;
    GA_Init_fence();
    check(p, (int)(MIB / 8));
    for (size_t o = 0; o < COUNT(OPS); o++) row(OPS[o].name, shape, "us", measure_alone(OPS[o].op, OPS[o].finish, p), 1);
}

/* The target computes for 100 ms and calls nothing; an operation that starts in that time. */
static void busy(patch_t *p)
{
    static const struct { const char *name; bench_op op; } OPS[] = {
        { "busy_get", get }, { "busy_put", put_watched }, { "busy_accumulate", accumulate_watched },
        { "busy_read_inc", increment },
    };
    for (size_t o = 0; o < COUNT(OPS); o++) row(OPS[o].name, "8B", "us", measure_busy(OPS[o].op, p, OTHER), 1);
}

void remote_rows(void)
{
    int half = (int)(MIB / 8), extent[2] = { 2 * half, 0 }, block[2] = { half, 0 }, two[1] = { 2 }, one[1] = { 1 };
    patch_t p = { .array = array(C_DBL, 1, extent, block), .leading = { half }, .local = pages(MIB),
                  .counter = array(C_LONG, 1, two, one) };
    GA_Zero(p.array);
    GA_Zero(p.counter);
    NGA_Distribution(p.array, OTHER, p.low, p.high);
    ALONE({
        GA_Init_fence();
        contiguous(&p);
        row("read_inc", "8B", "us", measure_alone(increment, NULL, &p), 1);
    });
    p.high[0] = p.low[0];
    busy(&p);
    GA_Destroy(p.array);
    for (size_t c = 0; c < COUNT(CHUNKS); c++) {
        int chunk = (int)(CHUNKS[c] / 8), rows = (int)(MIB / CHUNKS[c]);
        extent[0] = 2 * rows;
        block[0] = rows;
        extent[1] = block[1] = 4 * chunk;
        p.leading[0] = chunk;
        p.array = array(C_DBL, 2, extent, block);
        GA_Zero(p.array);
        NGA_Distribution(p.array, OTHER, p.low, p.high);
        ALONE({ strided(&p, chunk); });
        GA_Destroy(p.array);
    }
    GA_Destroy(p.counter);
    free(p.local);
}
