/* A libfabric with one provider, "strict": "sockets" made as strict as the documentation of Slingshot's cxi allows. What a program must not rely on does
 * not hold: memory is of no use before it is bound and enabled, keys are the provider's, local memory needs a descriptor, nothing is injected,
 * messages and reads overtake writes, writes overtake each other, a write is complete before it is visible unless it is asked to be delivered,
 * and calls are refused at random. A call that the interface forbids ends the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define MODES (FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT)
#define HELD 256

static const char *const PLACES[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"};

/* The tables of the real objects, of which a process has one each. */
static struct fi_ops_fabric fabric_ops, *real_fabric;
static struct fi_ops_domain domain_ops, *real_domain;
static struct fi_ops_mr mr_ops, *real_mr;
static struct fi_ops_cq cq_ops, *real_cq;
static struct fi_ops_rma rma_ops, *real_rma;
static struct fi_ops_msg msg_ops, *real_msg;

/* A region, as the program sees it. */
struct region {
	struct fid_mr mr;
	struct fid_mr *real;
	struct fid_domain *domain;
	const char *start;
	size_t len;
	uint64_t access, offset, flags;
	int bound, enabled;
};

/* A write that the adapter has not begun. */
static struct held {
	int used, begun;
	struct fid_ep *ep;
	char *copy;
	struct iovec piece;
	struct fi_rma_iov target;
	fi_addr_t to;
	void *context;
	uint64_t flags;
} held[HELD];

/* Completions of writes that are not visible. */
static struct { void *context; size_t len; } early[HELD];
static size_t earlies;

static void forbidden(const char *why)
{
	fprintf(stderr, "strict provider: %s\n", why);
	abort();
}

static uint64_t number(void)
{
	static uint64_t state;
	if (!state)
		state = 0x9E3779B97F4A7C15u * ((uint64_t)getpid() + 1);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int refused(void)
{
	return number() % 8 == 0;
}

static void *function(const char *name, const char *version)
{
	static void *library;
	char path[256];
	for (size_t at = 0; !library && at < sizeof(PLACES) / sizeof(*PLACES); at++) {
		snprintf(path, sizeof(path), "%s/libfabric.so.1", PLACES[at]);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	void *found = library ? dlvsym(library, name, version) : NULL;
	if (!found)
		forbidden("no libfabric below it");
	return found;
}

const char *fi_strerror(int code)
{
	return ((const char *(*)(int))function("fi_strerror", "FABRIC_1.0"))(code);
}

void fi_freeinfo(struct fi_info *info)
{
	((void (*)(struct fi_info *))function("fi_freeinfo", "FABRIC_1.3"))(info);
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return ((struct fi_info *(*)(const struct fi_info *))function("fi_dupinfo", "FABRIC_1.3"))(info);
}

static void rename_provider(struct fi_info *info, const char *name)
{
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup(name);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	int (*call)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **) =
		(int (*)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **))function("fi_getinfo", "FABRIC_1.3");
	if (!hints || !hints->fabric_attr->prov_name || strcmp(hints->fabric_attr->prov_name, "strict") || (hints->domain_attr->mr_mode & MODES) != MODES)
		return -FI_ENODATA;
	struct fi_info *asked = fi_dupinfo(hints);
	rename_provider(asked, "sockets");
	int code = call(version, node, service, flags, asked, info);
	fi_freeinfo(asked);
	for (struct fi_info *one = code ? NULL : *info; one; one = one->next) {
		rename_provider(one, "strict");
		one->tx_attr->msg_order = one->rx_attr->msg_order = FI_ORDER_SAS;
		one->tx_attr->inject_size = 0;
		one->ep_attr->max_order_raw_size = one->ep_attr->max_order_waw_size = 0;
		one->domain_attr->mr_mode = MODES;
	}
	return code;
}

/* An offer as the provider below has made it. */
static struct fi_info *real_info(const struct fi_info *info)
{
	struct fi_info *real = fi_dupinfo(info);
	rename_provider(real, "sockets");
	real->domain_attr->mr_mode = 0;
	return real;
}

/* Local memory must be of a region that is enabled. */
static void *check(const void *start, size_t len, void *descriptor)
{
	struct region *region = descriptor;
	if (!region || !region->enabled || (const char *)start < region->start || (const char *)start + len > region->start + region->len)
		forbidden("local memory without a region");
	return fi_mr_desc(region->real);
}

static int close_region(struct fid *fid)
{
	struct region *region = (struct region *)fid;
	int code = region->real ? fi_close(&region->real->fid) : 0;
	region->enabled = 0;
	free(region);
	return code;
}

static int bind_region(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)flags;
	((struct region *)fid)->bound = to->fclass == FI_CLASS_EP;
	return 0;
}

static int enable_region(struct fid *fid, int command, void *argument)
{
	(void)argument;
	struct region *region = (struct region *)fid;
	if (command != FI_ENABLE || !region->bound)
		forbidden("a region that is enabled before it is bound");
	int code = real_mr->reg(&region->domain->fid, region->start, region->len, region->access, region->offset, number(), region->flags, &region->real, NULL);
	region->enabled = !code;
	region->mr.key = code ? FI_KEY_NOTAVAIL : fi_mr_key(region->real);
	return code;
}

static struct fi_ops region_ops = {.size = sizeof(struct fi_ops), .close = close_region, .bind = bind_region, .control = enable_region};

static int reg(struct fid *domain, const void *start, size_t len, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **mr, void *context)
{
	(void)key;
	struct region *region = calloc(1, sizeof(*region));
	*region = (struct region){.domain = (struct fid_domain *)domain, .start = start, .len = len, .access = access, .offset = offset, .flags = flags};
	region->mr.fid = (struct fid){.fclass = FI_CLASS_MR, .context = context, .ops = &region_ops};
	region->mr.mem_desc = region;
	region->mr.key = FI_KEY_NOTAVAIL;
	*mr = &region->mr;
	return 0;
}

/* Begins a write that was held back. False if the provider below is full. */
static int begin(struct held *write)
{
	int is_early = !(write->flags & FI_DELIVERY_COMPLETE);
	struct fi_msg_rma message = {.msg_iov = &write->piece, .iov_count = 1, .addr = write->to, .rma_iov = &write->target, .rma_iov_count = 1,
		.context = is_early ? write : write->context};
	if (real_rma->writemsg(write->ep, &message, write->flags | FI_COMPLETION))
		return 0;
	write->begun = 1;
	write->used = is_early;
	return 1;
}

/* Begins some of the writes that are held back for a peer, or for any. */
static int begin_some(fi_addr_t to, int all)
{
	size_t first = number() % HELD;
	for (size_t k = 0; k < HELD; k++) {
		struct held *write = &held[(first + k) % HELD];
		if (write->used && !write->begun && (to == FI_ADDR_UNSPEC || write->to == to) && (!begin(write) || !all))
			return 0;
	}
	return 1;
}

static ssize_t writemsg(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
	void *descriptor = check(message->msg_iov->iov_base, message->msg_iov->iov_len, message->desc ? *message->desc : NULL);
	if (refused())
		return -FI_EAGAIN;
	if (flags & FI_FENCE) {
		struct fi_msg_rma real = *message;
		real.desc = &descriptor;
		return begin_some(message->addr, 1) ? real_rma->writemsg(ep, &real, flags) : -FI_EAGAIN;
	}
	struct held *write = held;
	while (write < held + HELD && write->used)
		write++;
	int is_early = !(flags & FI_DELIVERY_COMPLETE);
	if (write == held + HELD || (is_early && earlies == HELD))
		return -FI_EAGAIN;
	*write = (struct held){.used = 1, .ep = ep, .piece = *message->msg_iov, .target = *message->rma_iov, .to = message->addr, .context = message->context, .flags = flags};
	if (is_early) {
		write->copy = malloc(write->piece.iov_len + 1);
		write->piece.iov_base = memcpy(write->copy, message->msg_iov->iov_base, write->piece.iov_len);
		early[earlies].context = message->context;
		early[earlies++].len = 0;
	}
	return 0;
}

static ssize_t read_bytes(struct fid_ep *ep, void *start, size_t len, void *descriptor, fi_addr_t from, uint64_t address, uint64_t key, void *context)
{
	descriptor = check(start, len, descriptor);
	return refused() ? -FI_EAGAIN : real_rma->read(ep, start, len, descriptor, from, address, key, context);
}

static ssize_t send_bytes(struct fid_ep *ep, const void *start, size_t len, void *descriptor, fi_addr_t to, void *context)
{
	descriptor = check(start, len, descriptor);
	return refused() ? -FI_EAGAIN : real_msg->send(ep, start, len, descriptor, to, context);
}

static ssize_t receive_bytes(struct fid_ep *ep, void *start, size_t len, void *descriptor, fi_addr_t from, void *context)
{
	return real_msg->recv(ep, start, len, check(start, len, descriptor), from, context);
}

static ssize_t inject_write(struct fid_ep *ep, const void *start, size_t len, fi_addr_t to, uint64_t address, uint64_t key)
{
	(void)ep, (void)start, (void)len, (void)to, (void)address, (void)key;
	forbidden("a write that is injected");
	return 0;
}

static ssize_t inject(struct fid_ep *ep, const void *start, size_t len, fi_addr_t to)
{
	(void)ep, (void)start, (void)len, (void)to;
	forbidden("a message that is injected");
	return 0;
}

/* Returns true if a completion is of a write that was complete before. */
static int is_late(void *context)
{
	struct held *write = context;
	if (write < held || write >= held + HELD)
		return 0;
	free(write->copy);
	write->used = 0;
	return 1;
}

static ssize_t read_queue(struct fid_cq *cq, void *entries, size_t count)
{
	struct fi_cq_msg_entry *to = entries;
	size_t found = 0;
	if (number() % 2)
		begin_some(FI_ADDR_UNSPEC, 0);
	while (found < count && earlies)
		to[found++] = (struct fi_cq_msg_entry){.op_context = early[--earlies].context, .flags = FI_RMA | FI_WRITE};
	while (found < count) {
		ssize_t code = real_cq->read(cq, to + found, 1);
		if (code != 1)
			return found ? (ssize_t)found : code;
		found += !is_late(to[found].op_context);
	}
	return found;
}

static ssize_t read_error(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	ssize_t code = real_cq->readerr(cq, entry, flags);
	if (code == 1 && is_late(entry->op_context))
		entry->op_context = NULL;
	return code;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attributes, struct fid_cq **cq, void *context)
{
	if (attributes->wait_obj != FI_WAIT_NONE || attributes->format != FI_CQ_FORMAT_MSG)
		return -FI_ENOSYS;
	int code = real_domain->cq_open(domain, attributes, cq, context);
	if (!code) {
		real_cq = (*cq)->ops;
		cq_ops = *real_cq;
		cq_ops.read = read_queue;
		cq_ops.readerr = read_error;
		(*cq)->ops = &cq_ops;
	}
	return code;
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
	struct fi_info *real = real_info(info);
	int code = real_domain->endpoint(domain, real, ep, context);
	fi_freeinfo(real);
	if (!code) {
		real_rma = (*ep)->rma;
		rma_ops = *real_rma;
		rma_ops.writemsg = writemsg;
		rma_ops.read = read_bytes;
		rma_ops.inject = inject_write;
		(*ep)->rma = &rma_ops;
		real_msg = (*ep)->msg;
		msg_ops = *real_msg;
		msg_ops.send = send_bytes;
		msg_ops.recv = receive_bytes;
		msg_ops.inject = inject;
		(*ep)->msg = &msg_ops;
	}
	return code;
}

static int domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context)
{
	struct fi_info *real = real_info(info);
	int code = real_fabric->domain(fabric, real, domain, context);
	fi_freeinfo(real);
	if (!code) {
		real_domain = (*domain)->ops;
		domain_ops = *real_domain;
		domain_ops.endpoint = endpoint;
		domain_ops.cq_open = cq_open;
		(*domain)->ops = &domain_ops;
		real_mr = (*domain)->mr;
		mr_ops = *real_mr;
		mr_ops.reg = reg;
		(*domain)->mr = &mr_ops;
	}
	return code;
}

int fi_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context)
{
	int (*call)(struct fi_fabric_attr *, struct fid_fabric **, void *) =
		(int (*)(struct fi_fabric_attr *, struct fid_fabric **, void *))function("fi_fabric", "FABRIC_1.1");
	struct fi_fabric_attr real = *attributes;
	real.prov_name = "sockets";
	int code = call(&real, fabric, context);
	if (!code) {
		real_fabric = (*fabric)->ops;
		fabric_ops = *real_fabric;
		fabric_ops.domain = domain;
		(*fabric)->ops = &fabric_ops;
	}
	return code;
}
