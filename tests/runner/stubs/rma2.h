/* A header of librma2's calls as their callers use them, for tests of src/comm/extoll/shim.c. All values are made up. */
#ifndef STUB_RMA2_H
#define STUB_RMA2_H
#include <stddef.h>
#include <stdint.h>

typedef enum { RMA2_NO_NOTI = 0, RMA2_SUCCESS = 23, RMA2_ERR_ERROR = 4, RMA2_ERR_NO_MEM = -70, RMA2_ERR_INV_HANDLE = 12 } RMA2_ERROR;
typedef enum { RMA2_CONN_DEFAULT = 211, RMA2_CONN_PHYSICAL = 16 } RMA2_Connection_Options;
typedef enum { RMA2_COMPLETER_NOTIFICATION = 32, RMA2_REQUESTER_NOTIFICATION = 8, RMA2_RESPONDER_NOTIFICATION = 1 } RMA2_Notification_Spec;
typedef enum { RMA2_CMD_DEFAULT = 45, RMA2_CMD_NTR = 0 } RMA2_Command_Modifier;
typedef uint16_t RMA2_Nodeid;
typedef uint16_t RMA2_VPID;
typedef uint64_t RMA2_NLA;
typedef struct stub_port *RMA2_Port;
typedef struct stub_connection *RMA2_Handle;
typedef struct stub_region RMA2_Region;
typedef struct stub_notification RMA2_Notification;

RMA2_ERROR rma2_open(RMA2_Port *port);
RMA2_ERROR rma2_close(RMA2_Port port);
RMA2_Nodeid rma2_get_nodeid(RMA2_Port port);
RMA2_VPID rma2_get_vpid(RMA2_Port port);
RMA2_ERROR rma2_connect(RMA2_Port port, RMA2_Nodeid node, RMA2_VPID vpid, RMA2_Connection_Options options, RMA2_Handle *handle);
RMA2_ERROR rma2_register(RMA2_Port port, void *address, size_t size, RMA2_Region **region);
RMA2_ERROR rma2_unregister(RMA2_Port port, RMA2_Region *region);
RMA2_ERROR rma2_get_nla(RMA2_Region *region, size_t offset, RMA2_NLA *nla);
RMA2_ERROR rma2_post_put_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA source, uint32_t size, RMA2_NLA target, RMA2_Notification_Spec spec,
				   RMA2_Command_Modifier modifier);
RMA2_ERROR rma2_post_get_bt_direct(RMA2_Port port, RMA2_Handle handle, RMA2_NLA source, uint32_t size, RMA2_NLA target, RMA2_Notification_Spec spec,
				   RMA2_Command_Modifier modifier);
RMA2_ERROR rma2_noti_probe(RMA2_Port port, RMA2_Notification **notification);
RMA2_ERROR rma2_noti_free(RMA2_Port port, RMA2_Notification *notification);
RMA2_Notification_Spec rma2_noti_get_notification_type(RMA2_Notification *notification);
uint8_t rma2_noti_get_error(RMA2_Notification *notification);
RMA2_Nodeid rma2_noti_get_remote_nodeid(RMA2_Notification *notification);
RMA2_VPID rma2_noti_get_remote_vpid(RMA2_Notification *notification);
uint64_t rma2_noti_get_local_address(RMA2_Notification *notification);
uint32_t rma2_noti_get_size(RMA2_Notification *notification);
void rma2_serror(RMA2_ERROR error, char *text, int room);
#endif
