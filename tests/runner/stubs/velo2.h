/* A header of libvelo2's calls as their open callers use them, for tests of src/comm/extoll/shim.c. All values and structures are made up. */
#ifndef STUB_VELO2_H
#define STUB_VELO2_H
#include <stdint.h>

typedef enum { VELO2_RET_NO_MSG = 0, VELO2_RET_SUCCESS = 57, VELO2_RET_TRY_AGAIN = 3, VELO2_RET_INV_MSG = 1 } velo2_ret_t;
typedef uint32_t velo2_nodeid_t;
typedef uint32_t velo2_vpid_t;
typedef struct {
	char room[150];
	velo2_nodeid_t nodeid;
} velo2_port_t;
typedef struct {
	double room[9];
	velo2_nodeid_t node;
	velo2_vpid_t vpid;
} velo2_connection_t;

velo2_ret_t velo2_open(velo2_port_t *port);
velo2_ret_t velo2_close(velo2_port_t *port);
velo2_nodeid_t velo2_get_nodeid(velo2_port_t *port);
velo2_vpid_t velo2_get_vpid(velo2_port_t *port);
velo2_ret_t velo2_connect(velo2_port_t *port, velo2_connection_t *connection, velo2_nodeid_t nodeid, velo2_vpid_t vpid);
velo2_ret_t velo2_send(velo2_connection_t *connection, void *msg, unsigned len, uint8_t tag, uint8_t flags);
velo2_ret_t velo2_probe_recv(velo2_port_t *port, void *msg, unsigned room, uint32_t *len, uint32_t *srcid, uint8_t *tag, uint8_t *mtt);
#endif
