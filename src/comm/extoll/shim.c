/* The calls of RMA and VELO that global-arrays makes, with plain types. Compiled on the machine where it runs, against the headers there (README.md,
 * "EXTOLL"): those headers alone know the values of the enumerations and the layouts of the structures. */
#include <rma2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <velo2.h>

/* What calls answer. */
enum { DONE, NOT_NOW, REFUSED };

/* Words of a packet that takes one slot of a mailbox. VELO moves whole words. */
enum { PACKET = 7 };

/* In the names of senders, which no place of RMA has. */
static const uint64_t OF_VELO = 1ull << 32;

_Static_assert(sizeof(RMA2_NLA) == sizeof(uint64_t), "a network address is one word");
_Static_assert(sizeof(RMA2_Nodeid) <= 2 && sizeof(RMA2_VPID) <= 2, "a node and a process on it fit 32 bits");

/* The ports of the process. */
static RMA2_Port rma_port;
static velo2_port_t velo_port;

/* The connections with a peer. They last as long as the process, as those of librma2 do. */
struct peer {
	RMA2_Handle rma;
	velo2_connection_t velo;
};

/* A node and a process on it. */
#define PLACE(node, process) ((uint32_t)(node) | (uint32_t)(process) << 16)

/* Makes a call, and keeps its name. */
#define RMA(call, ...) rma(#call, call(__VA_ARGS__))
#define VELO(call, ...) velo(#call, call(__VA_ARGS__))

static char why[160];

const char *ga_extoll_why(void)
{
	return why;
}

static int rma(const char *call, RMA2_ERROR code)
{
	if (code == RMA2_SUCCESS)
		return DONE;
	int used = snprintf(why, sizeof why, "%s: ", call);
	rma2_serror(code, why + used, sizeof why - used - 1);
	return REFUSED;
}

static int velo(const char *call, int code)
{
	int not_now = code == VELO2_RET_TRY_AGAIN || code == VELO2_RET_NO_MSG;
	if (code != VELO2_RET_SUCCESS && !not_now)
		snprintf(why, sizeof why, "%s: error %d", call, code);
	return code == VELO2_RET_SUCCESS ? DONE : not_now ? NOT_NOW : REFUSED;
}

/* Fills in where peers reach RMA, and in the upper half where VELO. */
int ga_extoll_open(uint64_t *at)
{
	int code = RMA(rma2_open, &rma_port);
	if (code == DONE && (code = VELO(velo2_open, &velo_port)))
		rma2_close(rma_port);
	if (code)
		return code;
	*at = PLACE(velo2_get_nodeid(&velo_port), velo2_get_vpid(&velo_port));
	*at = *at << 32 | PLACE(rma2_get_nodeid(rma_port), rma2_get_vpid(rma_port));
	return DONE;
}

int ga_extoll_connect(uint64_t at, struct peer **peer)
{
	struct peer *made = calloc(1, sizeof *made);
	if (!made)
		return rma("calloc", RMA2_ERR_NO_MEM);
	*peer = made;
	int code = RMA(rma2_connect, rma_port, at & 0xffff, at >> 16 & 0xffff, RMA2_CONN_DEFAULT, &made->rma);
	return code ? code : VELO(velo2_connect, &velo_port, &made->velo, at >> 32 & 0xffff, at >> 48);
}

int ga_extoll_register(void *start, uint64_t bytes, RMA2_Region **region, uint64_t *address)
{
	int code = RMA(rma2_register, rma_port, start, bytes, region);
	return code ? code : RMA(rma2_get_nla, *region, 0, address);
}

int ga_extoll_unregister(RMA2_Region *region)
{
	return RMA(rma2_unregister, rma_port, region);
}

/* Both calls name the bytes here first. */
int ga_extoll_command(int is_get, const struct peer *peer, uint64_t here, uint64_t there, uint32_t bytes)
{
	return is_get ? RMA(rma2_post_get_bt_direct, rma_port, peer->rma, here, bytes, there, RMA2_COMPLETER_NOTIFICATION, RMA2_CMD_DEFAULT)
		      : RMA(rma2_post_put_bt_direct, rma_port, peer->rma, here, bytes, there, RMA2_REQUESTER_NOTIFICATION, RMA2_CMD_DEFAULT);
}

/* Fills in whether the command was a get, the lower half of where the peer is, where its bytes end here if it was a get, and which units have failed. */
int ga_extoll_notification(uint64_t *got)
{
	RMA2_Notification *came = NULL;
	RMA2_ERROR code = rma2_noti_probe(rma_port, &came);
	if (code != RMA2_SUCCESS)
		return code == RMA2_NO_NOTI ? NOT_NOW : rma("rma2_noti_probe", code);
	/* None of a responder is asked for. */
	got[0] = rma2_noti_get_notification_type(came) == RMA2_COMPLETER_NOTIFICATION;
	got[1] = PLACE(rma2_noti_get_remote_nodeid(came), rma2_noti_get_remote_vpid(came));
	/* A long get comes in packets, and this is of the last one. */
	got[2] = rma2_noti_get_local_address(came) + rma2_noti_get_size(came);
	got[3] = rma2_noti_get_error(came);
	return RMA(rma2_noti_free, rma_port, came);
}

/* The tag tells how many bytes there are: VELO rounds that up. */
int ga_extoll_send(struct peer *peer, const void *packet, uint32_t bytes, uint8_t tag)
{
	uint64_t words[PACKET] = {0};
	memcpy(words, packet, bytes < sizeof words ? bytes : sizeof words);
	return VELO(velo2_send, &peer->velo, (void *)words, bytes, tag, 0);
}

/* Fills in what VELO calls the sender, and the tag. */
int ga_extoll_receive(void *packet, uint64_t *got)
{
	uint64_t words[PACKET] = {0};
	uint32_t bytes, name = 0;
	uint8_t tag = 0, kind;
	int code = VELO(velo2_probe_recv, &velo_port, (void *)words, sizeof words, &bytes, &name, &tag, &kind);
	memcpy(packet, words, sizeof words);
	got[0] = OF_VELO | name;
	got[1] = tag;
	return code;
}

int ga_extoll_close(void)
{
	rma2_close(rma_port);
	return VELO(velo2_close, &velo_port);
}
