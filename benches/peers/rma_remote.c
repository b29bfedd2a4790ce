/* What crosses from one node to another: small and large transfers, patches of short chunks in each
 * shape that MPI offers, and operations on a target that computes and never enters MPI.
 */
#define _GNU_SOURCE
#include "rma.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW (4 * MIB)        /* chunks are a quarter of the rows that hold them */

typedef struct {
    window_t window;
    double *local;
    int count;                  /* of MPI_DOUBLEs in all */
    int chunk, chunks;          /* strided rows only: MPI_DOUBLEs in a chunk, chunks */
    MPI_Datatype layout;        /* of the chunks in the target's window */
} transfer_t;

static void flush(void *context)
{
    MPI_Win_flush(OTHER, ((transfer_t *)context)->window.handle);
}

static void put(void *context)
{
    transfer_t *t = context;
    MPI_Put(t->local, t->count, MPI_DOUBLE, OTHER, 0, t->count, MPI_DOUBLE, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void put_flush(void *context)
{
    transfer_t *t = context;
    MPI_Put(t->local, t->count, MPI_DOUBLE, OTHER, 0, t->count, MPI_DOUBLE, t->window.handle);
    MPI_Win_flush(OTHER, t->window.handle);
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

static void accumulate_flush(void *context)
{
    accumulate(context);
    flush(context);
}

static void increment(void *context)
{
    transfer_t *t = context;
    long one = 1, before;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, OTHER, 0, MPI_SUM, t->window.handle);
    MPI_Win_flush(OTHER, t->window.handle);
}

/* The chunks one after another, each an operation of its own, completed together. */
static void put_chunks(void *context)
{
    transfer_t *t = context;
    for (int k = 0; k < t->chunks; k++)
        MPI_Put(t->local + k * t->chunk, t->chunk, MPI_DOUBLE, OTHER, (MPI_Aint)(4 * k + 1) * t->chunk * 8, t->chunk,
                MPI_DOUBLE, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void get_chunks(void *context)
{
    transfer_t *t = context;
    for (int k = 0; k < t->chunks; k++)
        MPI_Get(t->local + k * t->chunk, t->chunk, MPI_DOUBLE, OTHER, (MPI_Aint)(4 * k + 1) * t->chunk * 8, t->chunk,
                MPI_DOUBLE, t->window.handle);
    MPI_Win_flush(OTHER, t->window.handle);
}

static void accumulate_chunks(void *context)
{
    transfer_t *t = context;
    for (int k = 0; k < t->chunks; k++)
        MPI_Accumulate(t->local + k * t->chunk, t->chunk, MPI_DOUBLE, OTHER, (MPI_Aint)(4 * k + 1) * t->chunk * 8,
                       t->chunk, MPI_DOUBLE, MPI_SUM, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

/* All chunks in one operation of a datatype. */
static void put_layout(void *context)
{
    transfer_t *t = context;
    MPI_Put(t->local, t->count, MPI_DOUBLE, OTHER, t->chunk * 8, 1, t->layout, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void get_layout(void *context)
{
    transfer_t *t = context;
    MPI_Get(t->local, t->count, MPI_DOUBLE, OTHER, t->chunk * 8, 1, t->layout, t->window.handle);
    MPI_Win_flush(OTHER, t->window.handle);
}

static void accumulate_layout(void *context)
{
    transfer_t *t = context;
    MPI_Accumulate(t->local, t->count, MPI_DOUBLE, OTHER, t->chunk * 8, 1, t->layout, MPI_SUM, t->window.handle);
    MPI_Win_flush_local(OTHER, t->window.handle);
}

static void check(transfer_t *t, const char *what, bench_op write, bench_op read)
{
    for (int k = 0; k < t->count; k++) t->local[k] = k + 1;
    write(t);
    flush(t);
    memset(t->local, 0, (size_t)t->count * 8);
    read(t);
    for (int k = 0; k < t->count; k++)
        if (t->local[k] != k + 1) {
            bench_failed(what, t->local[k], k + 1);
            break;
        }
}

/* Whether what one operation adds arrives whole: libraries are known to lose updates of some datatypes. */
static int adds(transfer_t *t, const char *what, bench_op add, bench_op write, bench_op read)
{
    for (int k = 0; k < t->count; k++) t->local[k] = k + 1;
    write(t);
    flush(t);
    add(t);
    flush(t);
    read(t);
    for (int k = 0; k < t->count; k++)
        if (t->local[k] != 2 * (k + 1)) {
            fprintf(stderr, "# left out: accumulate of the chunks as %s gives %g instead of %d\n", what, t->local[k], 2 * (k + 1));
            return 0;
        }
    return 1;
}

static void contiguous(transfer_t *t)
{
    static const struct { const char *name; bench_op op, finish; } OPS[] = {
        { "put", put, flush }, { "put_flush", put_flush, NULL }, { "get", get, NULL }, { "accumulate", accumulate, flush },
    };
    for (size_t k = 0; k < COUNT(REMOTE); k++) {
        t->count = (int)(REMOTE[k] / 8);
        check(t, "put and get", put, get);
        for (size_t o = 0; o < COUNT(OPS); o++)
            row(OPS[o].name, size_name(REMOTE[k]), "us", measure_alone(OPS[o].op, OPS[o].finish, t), 1);
    }
}

/* A vector and the same chunks listed one by one: libraries walk the two by different code. */
static void make_layout(transfer_t *t, int listed)
{
    if (!listed) {
        MPI_Type_vector(t->chunks, t->chunk, 4 * t->chunk, MPI_DOUBLE, &t->layout);
    } else {
        MPI_Aint *at = pages((size_t)t->chunks * sizeof *at);
        for (int k = 0; k < t->chunks; k++) at[k] = (MPI_Aint)k * 4 * t->chunk * 8;
        MPI_Type_create_hindexed_block(t->chunks, t->chunk, at, MPI_DOUBLE, &t->layout);
        free(at);
    }
    MPI_Type_commit(&t->layout);
}

static void strided(transfer_t *t, size_t chunk)
{
    static const struct { const char *name; bench_op chunks, layout, finish; } OPS[] = {
        { "put_strided", put_chunks, put_layout, flush }, { "get_strided", get_chunks, get_layout, NULL },
        { "accumulate_strided", accumulate_chunks, accumulate_layout, flush },
    };
    enum { WRITE, READ, ADD };
    static const char *const WAYS[] = { "loop", "vector", "indexed" };
    stat_t best[COUNT(OPS)] = { { 0 } };
    char shape[32], name[64];
    snprintf(shape, sizeof shape, "1MiB/%zuB", chunk);
    t->count = (int)(MIB / 8);
    t->chunk = (int)(chunk / 8);
    t->chunks = t->count / t->chunk;
    for (int way = 0; way < (int)COUNT(WAYS); way++) {
        bench_op op[COUNT(OPS)];
        for (size_t o = 0; o < COUNT(OPS); o++) op[o] = way > 0 ? OPS[o].layout : OPS[o].chunks;
        if (way > 0) make_layout(t, way == 2);
        check(t, WAYS[way], op[WRITE], op[READ]);
        int right = adds(t, WAYS[way], op[ADD], op[WRITE], op[READ]);
        for (size_t o = 0; o < COUNT(OPS); o++) {
            if (o == ADD && !right) continue;
            stat_t stat = measure_alone(op[o], OPS[o].finish, t);
            snprintf(name, sizeof name, "%s_%s", OPS[o].name, WAYS[way]);
            row(name, shape, "us", stat, 1);
            if (best[o].trials == 0 || stat.median < best[o].median) best[o] = stat;
        }
        if (way > 0) MPI_Type_free(&t->layout);
    }
    for (size_t o = 0; o < COUNT(OPS); o++)
        if (best[o].trials > 0) row(OPS[o].name, shape, "us", best[o], 1);
}

/* One way of what a put with a signal does: a bare message goes there and another comes back, and half of the time counts. */
static void message(void *context)
{
    transfer_t *t = context;
    int other = 1 - bench_rank;
    if (bench_rank == OTHER) MPI_Recv(t->local, t->count, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(t->local, t->count, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    if (bench_rank != OTHER) MPI_Recv(t->local, t->count, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void messages(const char *name, const size_t *lengths, size_t count)
{
    transfer_t t = { .local = pages(MIB) };
    for (size_t k = 0; k < count; k++) {
        t.count = (int)lengths[k];
        row(name, size_name(lengths[k]), "ns", measure_together(message, &t), 2);
    }
    free(t.local);
}

void message_rows(void)
{
    messages("message", MESSAGES, COUNT(MESSAGES));
}

/* A question and its answer. */
static void call(void *context)
{
    transfer_t *t = context;
    int other = 1 - bench_rank;
    if (bench_rank == OTHER) {
        MPI_Recv(t->local, ASKED, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(t->local, ANSWERED, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    } else {
        MPI_Send(t->local, ASKED, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        MPI_Recv(t->local, ANSWERED, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Many messages one way, then a word that all have come. */
static void flood(void *context)
{
    transfer_t *t = context;
    int other = 1 - bench_rank;
    for (int k = 0; k < CALLS; k++) {
        if (bench_rank == OTHER)
            MPI_Recv(t->local, t->count, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(t->local, t->count, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    if (bench_rank == OTHER)
        MPI_Send(t->local, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(t->local, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void active_rows(void)
{
    static const size_t FLOODS[] = { 8, 64, 4 * KIB };
    transfer_t t = { .local = pages(MIB) };
    row("call", "64B", "ns", measure_together(call, &t), 1);
    for (size_t k = 0; k < COUNT(FLOODS); k++) {
        t.count = (int)FLOODS[k];
        row("flood", size_name(FLOODS[k]), "ns", measure_together(flood, &t), CALLS);
    }
    free(t.local);
    messages("mailbox", LETTERS, COUNT(LETTERS));
}

/* The target computes for 100 ms and calls nothing; an operation that starts in that time. */
static void busy(transfer_t *t)
{
    static const struct { const char *name; bench_op op; } OPS[] = {
        { "busy_get", get }, { "busy_put", put_flush }, { "busy_accumulate", accumulate_flush }, { "busy_read_inc", increment },
    };
    t->count = 1;
    for (size_t o = 0; o < COUNT(OPS); o++) row(OPS[o].name, "8B", "us", measure_busy(OPS[o].op, t, OTHER), 1);
}

void remote_rows(void)
{
    transfer_t t = { .window = window_new(WINDOW), .local = pages(MIB) };
    ALONE({
        contiguous(&t);
        for (size_t c = 0; c < COUNT(CHUNKS); c++) strided(&t, CHUNKS[c]);
        memset(t.local, 0, 8);
        t.count = 1;
        put_flush(&t);          /* a counter from here on */
        row("read_inc", "8B", "us", measure_alone(increment, NULL, &t), 1);
    });
    t.count = 8;
    row("put_signal", "8B", "us", measure_together(message, &t), 2);
    t.count = 100;
    row("message", "100B", "us", measure_together(message, &t), 2);
    busy(&t);
    window_free(&t.window);
    free(t.local);
}
