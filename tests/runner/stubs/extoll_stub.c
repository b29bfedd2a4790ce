/* Both engines of one process, which record their calls. All connections lead to the process itself; bytes move at once. */
#include "record.h"
#include "rma2.h"

enum { NODE = 0x0102, VPID = 9, ROOM = 64 };

struct stub_port { int is_open; };
struct stub_connection { RMA2_Nodeid node; RMA2_VPID vpid; };
struct stub_region { char *start; size_t size; RMA2_NLA nla; };
struct stub_notification { RMA2_Notification_Spec type; uint8_t error; RMA2_Nodeid node; RMA2_VPID vpid; RMA2_NLA address; uint32_t size; };

static struct stub_port port_of_all;
static struct stub_region regions[ROOM];
static struct stub_notification notifications[ROOM];
static unsigned made, noted, taken;

static RMA2_ERROR answer(void)
{
	return is_told("RMA2_ERR_NO_MEM") ? RMA2_ERR_NO_MEM : is_told("RMA2_ERR_INV_HANDLE") ? RMA2_ERR_INV_HANDLE : RMA2_SUCCESS;
}

RMA2_ERROR rma2_open(RMA2_Port *port)
{
	*port = &port_of_all;
	record("rma2_open");
	return answer();
}

RMA2_ERROR rma2_close(RMA2_Port port)
{
	record("rma2_close %s", port == &port_of_all ? "port" : "?");
	return RMA2_SUCCESS;
}

RMA2_Nodeid rma2_get_nodeid(RMA2_Port port)
{
	return port == &port_of_all ? NODE : 0;
}

RMA2_VPID rma2_get_vpid(RMA2_Port port)
{
	return port == &port_of_all ? VPID : 0;
}

RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid node, RMA2_VPID vpid, RMA2_Connection_Options options, RMA2_Handle *handle)
{
	record("rma2_connect %s, node %x, vpid %x, %s", port == &port_of_all ? "port" : "?", node, vpid, options == RMA2_CONN_DEFAULT ? "default" : "?");
	*handle = malloc(sizeof **handle);
	**handle = (struct stub_connection){node, vpid};
	return answer();
}

RMA2_ERROR rma2_register(RMA2_Port port, void *address, size_t size, RMA2_Region **region)
{
	record("rma2_register %s, address %p, size %zu", port == &port_of_all ? "port" : "?", address, size);
	regions[made] = (struct stub_region){address, size, 0x100000000ul * (made + 1)};
	*region = &regions[made++];
	return answer();
}

RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region *region)
{
	record("rma2_unregister %s, address %p", port == &port_of_all ? "port" : "?", region->start);
	return RMA2_SUCCESS;
}

RMA2_ERROR rma2_get_nla(RMA2_Region *region, size_t offset, RMA2_NLA *nla)
{
	*nla = region->nla + offset;
	return RMA2_SUCCESS;
}

static char *at(RMA2_NLA nla)
{
	return regions[nla / 0x100000000ul - 1].start + nla % 0x100000000ul;
}

static void note(RMA2_Notification_Spec type, RMA2_Handle handle, RMA2_NLA address, uint32_t size)
{
	uint8_t error = is_told("error") ? 5 : 0;
	notifications[noted++ % ROOM] = (struct stub_notification){type, error, handle->node, handle->vpid, address, size};
}

static RMA2_ERROR post(const char *call, RMA2_Port port, RMA2_Handle handle, RMA2_NLA local, uint32_t size, RMA2_NLA remote, RMA2_Notification_Spec spec,
		       RMA2_Command_Modifier modifier)
{
	record("%s %s, handle of %x, local %lx, size %u, remote %lx, %s, %s", call, port == &port_of_all ? "port" : "?", handle->node, local, size, remote,
	       spec == RMA2_REQUESTER_NOTIFICATION   ? "requester"
	       : spec == RMA2_COMPLETER_NOTIFICATION ? "completer"
						     : "?",
	       modifier == RMA2_CMD_DEFAULT ? "default" : "?");
	return answer();
}

RMA2_ERROR rma2_post_put_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA source, uint32_t size, RMA2_NLA target, RMA2_Notification_Spec spec,
				   RMA2_Command_Modifier modifier)
{
	RMA2_ERROR code = post("rma2_post_put_bt_direct", port, handle, source, size, target, spec, modifier);
	if (code == RMA2_SUCCESS) {
		memcpy(at(target), at(source), size);
		note(spec, handle, source, size);
	}
	return code;
}

RMA2_ERROR rma2_post_get_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA source, uint32_t size, RMA2_NLA target, RMA2_Notification_Spec spec,
				   RMA2_Command_Modifier modifier)
{
	RMA2_ERROR code = post("rma2_post_get_bt_direct", port, handle, source, size, target, spec, modifier);
	/* The notification is of the last packet. */
	uint32_t last = (size - 1) % 496 + 1;
	if (code == RMA2_SUCCESS) {
		memcpy(at(source), at(target), size);
		note(spec, handle, source + size - last, last);
	}
	return code;
}

RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification **notification)
{
	*notification = &notifications[taken % ROOM];
	return port != &port_of_all || is_told("RMA2_ERR_ERROR") ? RMA2_ERR_ERROR : taken == noted ? RMA2_NO_NOTI : RMA2_SUCCESS;
}

RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification *notification)
{
	int is_first = port == &port_of_all && notification == &notifications[taken % ROOM];
	record("rma2_noti_free %s", is_first ? "the first" : "?");
	*notification = (struct stub_notification){0};
	taken++;
	return RMA2_SUCCESS;
}

#define FIELD(type, call, field) type call(RMA2_Notification *notification) { return notification->field; }
FIELD(RMA2_Notification_Spec, rma2_noti_get_notification_type, type)
FIELD(uint8_t, rma2_noti_get_error, error)
FIELD(RMA2_Nodeid, rma2_noti_get_remote_nodeid, node)
FIELD(RMA2_VPID, rma2_noti_get_remote_vpid, vpid)
FIELD(uint64_t, rma2_noti_get_local_address, address)
FIELD(uint32_t, rma2_noti_get_size, size)

void rma2_serror(RMA2_ERROR error, char *text, int room)
{
	strncpy(text, error == RMA2_ERR_NO_MEM ? "no memory" : error == RMA2_ERR_INV_HANDLE ? "invalid handle" : "an error", room);
}

#include "velo2_stub.c"
