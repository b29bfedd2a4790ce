/* The part of `extoll_stub.c` that is VELO: packets come back to their sender. */
#include "velo2.h"

enum { VELO_VPID = 4 };

static struct { char bytes[64]; uint32_t len, srcid; uint8_t tag; } packets[ROOM];
static unsigned sent, received;

static velo2_ret_t velo_answer(void)
{
	return is_told("VELO2_RET_TRY_AGAIN") ? VELO2_RET_TRY_AGAIN : is_told("VELO2_RET_INV_MSG") ? VELO2_RET_INV_MSG : VELO2_RET_SUCCESS;
}

velo2_ret_t velo2_open(velo2_port_t *port)
{
	port->nodeid = NODE;
	record("velo2_open");
	return velo_answer();
}

velo2_ret_t velo2_close(velo2_port_t *port)
{
	record("velo2_close %s", port->nodeid == NODE ? "port" : "?");
	return VELO2_RET_SUCCESS;
}

velo2_nodeid_t velo2_get_nodeid(velo2_port_t *port)
{
	return port->nodeid;
}

velo2_vpid_t velo2_get_vpid(velo2_port_t *port)
{
	return port->nodeid == NODE ? VELO_VPID : 0;
}

velo2_ret_t velo2_connect(velo2_port_t *port, velo2_connection_t *connection, velo2_nodeid_t nodeid, velo2_vpid_t vpid)
{
	record("velo2_connect %s, node %x, vpid %x", port->nodeid == NODE ? "port" : "?", nodeid, vpid);
	connection->node = nodeid;
	connection->vpid = vpid;
	return velo_answer();
}

velo2_ret_t velo2_send(velo2_connection_t *connection, void *msg, unsigned len, uint8_t tag, uint8_t flags)
{
	velo2_ret_t code = velo_answer();
	record("velo2_send connection with %x, len %u, tag %u, flags %u", connection->node, len, tag, flags);
	if (code == VELO2_RET_SUCCESS) {
		/* Whole words are moved, and the peer hears of those. */
		uint32_t rounded = (len + 7) / 8 * 8;
		memcpy(packets[sent % ROOM].bytes, msg, rounded);
		packets[sent % ROOM].len = rounded;
		packets[sent % ROOM].tag = tag;
		packets[sent++ % ROOM].srcid = connection->node << 13 ^ connection->vpid ^ 0x7000000;
	}
	return code;
}

velo2_ret_t velo2_probe_recv(velo2_port_t *port, void *msg, unsigned room, uint32_t *len, uint32_t *srcid, uint8_t *tag, uint8_t *mtt)
{
	velo2_ret_t code = velo_answer();
	if (code != VELO2_RET_SUCCESS || received == sent)
		return code != VELO2_RET_SUCCESS ? code : VELO2_RET_NO_MSG;
	*len = packets[received % ROOM].len;
	*tag = packets[received % ROOM].tag;
	*srcid = packets[received % ROOM].srcid;
	*mtt = 0;
	if (port->nodeid != NODE || *len > room)
		return VELO2_RET_INV_MSG;
	memcpy(msg, packets[received++ % ROOM].bytes, *len);
	return VELO2_RET_SUCCESS;
}
