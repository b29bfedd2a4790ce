/* A header as DMAPP's manual describes one (Cray S-2446), for tests of src/comm/gemini/shim.c. It names what the shim uses. All values and the order of
 * fields are made up, so that nothing but a header of the machine can tell them. */
#include <stddef.h>
#include <stdint.h>

typedef enum {
	DMAPP_RC_NO_SPACE = 0,
	DMAPP_RC_SUCCESS = 41,
	DMAPP_RC_INVALID_PARAM = 1,
	DMAPP_RC_ALIGNMENT_ERROR = 2,
	DMAPP_RC_TRANSACTION_ERROR = 77,
	DMAPP_RC_RESOURCE_ERROR = -5,
} dmapp_return_t;

typedef enum { DMAPP_QW = 101, DMAPP_BYTE = 770, DMAPP_DQW = 53, DMAPP_DW = 213 } dmapp_type_t;

typedef enum { DMAPP_PI_ORDERING_RELAXED = 1, DMAPP_PI_ORDERING_STRICT = 19, DMAPP_PI_ORDERING_DEFAULT = 0 } dmapp_pi_reg_type_t;

typedef int dmapp_pe_t;
typedef struct dmapp_syncid *dmapp_syncid_handle_t;

typedef struct {
	uint64_t qword1, qword2;
} gni_mem_handle_t;

typedef struct {
	uint16_t flags;
	gni_mem_handle_t memhndl;
	size_t len;
	void *addr;
	void *reserved;
} dmapp_seg_desc_t;

typedef struct {
	dmapp_pi_reg_type_t PI_ordering;
	uint32_t offload_threshold;
	uint32_t max_outstanding_nb;
	uint32_t max_concurrency;
} dmapp_rma_attrs_ext_t;

typedef struct {
	int version;
	int npes;
	dmapp_pe_t pe;
} dmapp_jobinfo_t;

dmapp_return_t dmapp_initialized(int *flag);
dmapp_return_t dmapp_init_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual);
dmapp_return_t dmapp_get_rma_attrs_ext(dmapp_rma_attrs_ext_t *attrs);
dmapp_return_t dmapp_set_rma_attrs_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual);
dmapp_return_t dmapp_get_jobinfo(dmapp_jobinfo_t *info);
dmapp_return_t dmapp_finalize(void);
dmapp_return_t dmapp_explain_error(dmapp_return_t code, const char **text);
dmapp_return_t dmapp_mem_register(void *addr, uint64_t length, dmapp_seg_desc_t *seg);
dmapp_return_t dmapp_mem_unregister(dmapp_seg_desc_t *seg);
dmapp_return_t dmapp_put_nb(void *target, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source, uint64_t nelems, dmapp_type_t type,
			    dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_get_nb(void *target, void *source, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type,
			    dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afadd_qw_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afand_qw_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afor_qw_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afxor_qw_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_acswap_qw_nb(void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe, int64_t comparand, int64_t swap,
				  dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_syncid_test(dmapp_syncid_handle_t *syncid, int *flag);
