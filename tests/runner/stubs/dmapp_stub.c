/* A DMAPP of one PE, which records its calls. Bytes move at once, within the process. */
#include "dmapp.h"
#include "record.h"

#define NAMED(name) { name, #name }

static const struct { int value; const char *name; } CODES[] = {
	NAMED(DMAPP_RC_NO_SPACE), NAMED(DMAPP_RC_INVALID_PARAM), NAMED(DMAPP_RC_ALIGNMENT_ERROR), NAMED(DMAPP_RC_TRANSACTION_ERROR), NAMED(DMAPP_RC_RESOURCE_ERROR),
}, TYPES[] = { NAMED(DMAPP_BYTE), NAMED(DMAPP_DW), NAMED(DMAPP_QW), NAMED(DMAPP_DQW) }, ORDERINGS[] = {
	NAMED(DMAPP_PI_ORDERING_STRICT), NAMED(DMAPP_PI_ORDERING_DEFAULT), NAMED(DMAPP_PI_ORDERING_RELAXED),
};
#define NAME(table, of) name_of(of, (const void *)table, sizeof table / sizeof *table)

static const char *name_of(int value, const void *table, size_t count)
{
	const struct { int value; const char *name; } *entry = table;
	for (; count--; entry++)
		if (entry->value == value)
			return entry->name;
	return "unknown";
}

static dmapp_rma_attrs_ext_t attributes = {DMAPP_PI_ORDERING_DEFAULT, 4096, 512, 1};
static uint64_t registered, begun;
static int is_open;

static dmapp_return_t answer(void)
{
	for (size_t k = 0; k < sizeof CODES / sizeof *CODES; k++)
		if (is_told(CODES[k].name))
			return CODES[k].value;
	return DMAPP_RC_SUCCESS;
}

static const char *said(const dmapp_seg_desc_t *seg)
{
	static char text[128];
	snprintf(text, sizeof text, "{addr %p, len %zu, handle %lx %lx, flags %x}", seg->addr, seg->len, seg->memhndl.qword1, seg->memhndl.qword2, seg->flags);
	return text;
}

static dmapp_return_t begin(dmapp_return_t code, dmapp_syncid_handle_t *syncid)
{
	if (code == DMAPP_RC_SUCCESS)
		*syncid = (dmapp_syncid_handle_t)(0xabc000000000 + ++begun);
	return code;
}

dmapp_return_t dmapp_initialized(int *flag)
{
	*flag = is_open || is_told("open");
	return DMAPP_RC_SUCCESS;
}

static dmapp_return_t grant(const char *call, dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual)
{
	record("%s requested {max_outstanding_nb %u, PI_ordering %s, offload_threshold %u, max_concurrency %u}", call, requested->max_outstanding_nb,
	       NAME(ORDERINGS, requested->PI_ordering), requested->offload_threshold, requested->max_concurrency);
	attributes = *requested;
	attributes.max_outstanding_nb = requested->max_outstanding_nb < 1024 ? requested->max_outstanding_nb : 1024;
	if (is_told("relaxed"))
		attributes.PI_ordering = DMAPP_PI_ORDERING_RELAXED;
	*actual = attributes;
	return answer();
}

dmapp_return_t dmapp_init_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual)
{
	is_open = 1;
	return grant("dmapp_init_ext", requested, actual);
}

dmapp_return_t dmapp_set_rma_attrs_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual)
{
	return grant("dmapp_set_rma_attrs_ext", requested, actual);
}

dmapp_return_t dmapp_get_rma_attrs_ext(dmapp_rma_attrs_ext_t *attrs)
{
	*attrs = attributes;
	return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_get_jobinfo(dmapp_jobinfo_t *info)
{
	const char *pes = getenv("STUB_PES");
	*info = pes ? (dmapp_jobinfo_t){.npes = atoi(pes)} : (dmapp_jobinfo_t){.version = 9, .npes = 7, .pe = 3};
	return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_finalize(void)
{
	is_open = 0;
	record("dmapp_finalize");
	return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_explain_error(dmapp_return_t code, const char **text)
{
	*text = NAME(CODES, code);
	return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_mem_register(void *addr, uint64_t length, dmapp_seg_desc_t *seg)
{
	uint64_t number = is_told("the same segment") ? registered : ++registered;
	*seg = (dmapp_seg_desc_t){.addr = addr, .len = length, .memhndl = {0xa0 + number, 0xb0 + number}, .flags = 0x5a};
	record("dmapp_mem_register addr %p, length %lu", addr, length);
	return answer();
}

dmapp_return_t dmapp_mem_unregister(dmapp_seg_desc_t *seg)
{
	record("dmapp_mem_unregister seg %s", said(seg));
	return answer();
}

static size_t bytes(uint64_t nelems, dmapp_type_t type)
{
	return nelems * (type == DMAPP_DQW ? 16 : type == DMAPP_QW ? 8 : type == DMAPP_DW ? 4 : 1);
}

dmapp_return_t dmapp_put_nb(void *target, dmapp_seg_desc_t *seg, dmapp_pe_t pe, void *source, uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
	record("dmapp_put_nb target %p, seg %s, pe %d, source %p, nelems %lu, type %s", target, said(seg), pe, source, nelems, NAME(TYPES, type));
	memcpy(target, source, bytes(nelems, type));
	return begin(answer(), syncid);
}

dmapp_return_t dmapp_get_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
	record("dmapp_get_nb target %p, source %p, seg %s, pe %d, nelems %lu, type %s", target, source, said(seg), pe, nelems, NAME(TYPES, type));
	memcpy(target, source, bytes(nelems, type));
	return begin(answer(), syncid);
}

#define ATOMIC(call, after)                                                                                                                        \
	dmapp_return_t call(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t operand, dmapp_syncid_handle_t *syncid)      \
	{                                                                                                                                          \
		int64_t old = *(int64_t *)target = *(int64_t *)source;                                                                             \
		record(#call " target %p, source %p, seg %s, pe %d, operand %ld", target, source, said(seg), pe, operand);                         \
		*(int64_t *)source = after;                                                                                                        \
		return begin(answer(), syncid);                                                                                                    \
	}
ATOMIC(dmapp_afadd_qw_nb, old + operand)
ATOMIC(dmapp_afand_qw_nb, old & operand)
ATOMIC(dmapp_afor_qw_nb, old | operand)
ATOMIC(dmapp_afxor_qw_nb, old ^ operand)

dmapp_return_t dmapp_acswap_qw_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t comparand, int64_t swap, dmapp_syncid_handle_t *syncid)
{
	int64_t old = *(int64_t *)target = *(int64_t *)source;
	record("dmapp_acswap_qw_nb target %p, source %p, seg %s, pe %d, comparand %ld, swap %ld", target, source, said(seg), pe, comparand, swap);
	*(int64_t *)source = old == comparand ? swap : old;
	return begin(answer(), syncid);
}

dmapp_return_t dmapp_syncid_test(dmapp_syncid_handle_t *syncid, int *flag)
{
	record("dmapp_syncid_test syncid %p", (void *)*syncid);
	*flag = !is_told("not ended");
	return answer();
}
