/* The calls of DMAPP that global-arrays makes, with plain types. Compiled on the machine where it runs, against the header there (README.md, "Cray
 * Gemini"): that header alone knows the values of DMAPP's enumerations and the layouts of its structures. */
#include <dmapp.h>
#include <stdint.h>
#include <string.h>

/* What calls answer. */
enum { DONE, NOT_NOW, REFUSED };

/* Atomic operations. */
enum { ADD, AND, OR, XOR, COMPARE_SWAP };

/* Words that the caller keeps of a segment of its own, of the handle by which peers name it, and of a work. */
enum { SEGMENT = 8, HANDLE = 2, WORK = 1 };

_Static_assert(sizeof(dmapp_seg_desc_t) <= SEGMENT * sizeof(uint64_t), "the caller has no room for a segment");
_Static_assert(sizeof(((dmapp_seg_desc_t *)0)->memhndl) == HANDLE * sizeof(uint64_t), "peers name memory by two words");
_Static_assert(sizeof(dmapp_syncid_handle_t) <= WORK * sizeof(uint64_t), "a work is one word");
_Static_assert(sizeof(void *) == sizeof(uint64_t), "an address is one word");

static const char *why = "";

/* The last segment that was registered here. */
static dmapp_seg_desc_t own;

/* Another library of the process has opened DMAPP, and closes it. */
static int is_of_another;

const char *ga_dmapp_why(void)
{
	return why;
}

static int answer(dmapp_return_t code)
{
	if (code == DMAPP_RC_SUCCESS)
		return DONE;
	dmapp_explain_error(code, &why);
	return code == DMAPP_RC_NO_SPACE ? NOT_NOW : REFUSED;
}

static dmapp_type_t type_of(uint64_t bytes)
{
	return bytes == 16 ? DMAPP_DQW : bytes == 8 ? DMAPP_QW : bytes == 4 ? DMAPP_DW : DMAPP_BYTE;
}

/* Memory of a peer. What this rank does not know of the peer's segment is as in one of its own: all ranks register alike. */
static dmapp_seg_desc_t segment_of(const uint64_t *handle, void *there, uint64_t bytes)
{
	dmapp_seg_desc_t segment = own;
	segment.addr = there;
	segment.len = bytes;
	memcpy(&segment.memhndl, handle, sizeof segment.memhndl);
	return segment;
}

static int begun(dmapp_return_t code, const dmapp_syncid_handle_t *id, uint64_t *work)
{
	memcpy(work, id, sizeof *id);
	return answer(code);
}

/* Fills in the PE, the number of PEs, the works that may be under way, and whether what has ended is visible. */
int ga_dmapp_open(uint64_t works, uint64_t *got)
{
	dmapp_rma_attrs_ext_t wanted = {0}, granted = {0};
	dmapp_jobinfo_t job;
	int code;
	if ((code = answer(dmapp_initialized(&is_of_another))) || (code = answer(dmapp_get_rma_attrs_ext(&wanted))))
		return code;
	/* That number is taken when DMAPP is opened, and stays. */
	if (!is_of_another)
		wanted.max_outstanding_nb = works;
	wanted.PI_ordering = DMAPP_PI_ORDERING_STRICT;
	if ((code = answer(is_of_another ? dmapp_set_rma_attrs_ext(&wanted, &granted) : dmapp_init_ext(&wanted, &granted))))
		return code;
	if ((code = answer(dmapp_get_rma_attrs_ext(&granted))) || (code = answer(dmapp_get_jobinfo(&job))))
		return code;
	got[0] = job.pe;
	got[1] = job.npes;
	got[2] = granted.max_outstanding_nb;
	got[3] = granted.PI_ordering == DMAPP_PI_ORDERING_STRICT;
	return DONE;
}

int ga_dmapp_register(void *start, uint64_t bytes, uint64_t *segment, uint64_t *handle)
{
	dmapp_seg_desc_t made = {0};
	int code = answer(dmapp_mem_register(start, bytes, &made));
	if (code == DONE)
		own = made;
	memcpy(segment, &made, sizeof made);
	memcpy(handle, &made.memhndl, sizeof made.memhndl);
	return code;
}

int ga_dmapp_unregister(uint64_t *segment)
{
	return answer(dmapp_mem_unregister((dmapp_seg_desc_t *)segment));
}

int ga_dmapp_put(int pe, const uint64_t *handle, void *there, void *here, uint64_t count, uint64_t width, uint64_t *work)
{
	dmapp_syncid_handle_t id = {0};
	dmapp_seg_desc_t to = segment_of(handle, there, count * width);
	return begun(dmapp_put_nb(there, &to, pe, here, count, type_of(width), &id), &id, work);
}

int ga_dmapp_get(int pe, const uint64_t *handle, void *there, void *here, uint64_t count, uint64_t width, uint64_t *work)
{
	dmapp_syncid_handle_t id = {0};
	dmapp_seg_desc_t from = segment_of(handle, there, count * width);
	return begun(dmapp_get_nb(here, there, &from, pe, count, type_of(width), &id), &id, work);
}

/* Changes a word of eight bytes, whose old value comes to `old`. For COMPARE_SWAP `operand` is what it is compared with. */
int ga_dmapp_atomic(int kind, int pe, const uint64_t *handle, void *there, void *old, uint64_t operand, uint64_t swap, uint64_t *work)
{
	dmapp_syncid_handle_t id = {0};
	dmapp_seg_desc_t of = segment_of(handle, there, sizeof(uint64_t));
	dmapp_return_t code = kind == ADD   ? dmapp_afadd_qw_nb(old, there, &of, pe, operand, &id)
			      : kind == AND ? dmapp_afand_qw_nb(old, there, &of, pe, operand, &id)
			      : kind == OR  ? dmapp_afor_qw_nb(old, there, &of, pe, operand, &id)
			      : kind == XOR ? dmapp_afxor_qw_nb(old, there, &of, pe, operand, &id)
					    : dmapp_acswap_qw_nb(old, there, &of, pe, operand, swap, &id);
	return begun(code, &id, work);
}

int ga_dmapp_test(uint64_t work)
{
	dmapp_syncid_handle_t id = {0};
	int has_ended = 0;
	memcpy(&id, &work, sizeof id);
	int code = answer(dmapp_syncid_test(&id, &has_ended));
	return code == DONE && !has_ended ? NOT_NOW : code;
}

int ga_dmapp_close(void)
{
	return is_of_another ? DONE : answer(dmapp_finalize());
}
