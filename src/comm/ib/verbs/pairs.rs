//! Queue pairs on their way from state to state, and the table that they are kept in.

use std::{
    ffi::c_int,
    sync::{PoisonError, RwLock},
};

use super::{
    library::{Object, check, zeroed},
    port::VerbsPort,
};
use crate::comm::{
    ib::{
        device::{Access, Address, DeviceError, Result, State, To},
        ffi::*,
    },
    kit::{mutex::Mutex, slab::Slab},
};

/// The most routers that packets pass: the default of IP.
const HOPS: u8 = 64;

/// A connected pair, and the last state that it was moved to. What fails goes to the error state by itself, which is not seen here
/// and need not be: from both states the same steps are possible, and both take works.
#[derive(Debug)]
pub(super) struct VerbsPair {
    pub(super) pair: Object<ibv_qp>,
    pub(super) state: Mutex<State>,
}

/// What lives under the ids that the device gives out. Values are used side by side, and none is destroyed meanwhile.
#[derive(Debug)]
pub(super) struct HandleTable<T>(RwLock<Slab<T>>);

impl<T> Default for HandleTable<T> {
    fn default() -> Self {
        HandleTable(RwLock::default())
    }
}

impl<T> HandleTable<T> {
    pub(super) fn add(&self, value: T) -> u64 {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(value)
    }

    pub(super) fn with<R>(&self, what: &'static str, id: u64, use_it: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        values.get(id).map_or(Err(DeviceError::Unknown { what, id }), use_it)
    }

    pub(super) fn remove(&self, what: &'static str, id: u64) -> Result<T> {
        let removed = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        removed.ok_or(DeviceError::Unknown { what, id })
    }
}

/// Where packets to a peer go. Over InfiniBand the global part is left out where it can be: in a subnet, unless the port of either end needs
/// it, or the peer wants to read the sender's GID, as a receiver of datagrams does.
pub(super) fn path(port: &VerbsPort, peer: &Address, always_global: bool) -> ibv_ah_attr {
    let same_subnet = peer.gid[..8] == port.gid.raw[..8];
    let grh = ibv_global_route {
        dgid: ibv_gid { raw: peer.gid },
        flow_label: 0,
        sgid_index: port.gid.index,
        hop_limit: HOPS,
        traffic_class: port.class,
    };
    ibv_ah_attr {
        grh,
        dlid: peer.lid,
        sl: port.level,
        src_path_bits: 0,
        static_rate: 0,
        is_global: u8::from(always_global || port.ethernet || port.global || peer.global || !same_subnet),
        port_num: port.number,
    }
}

/// What remote peers may do, as verbs writes it.
pub(super) fn rights(access: Access) -> c_int {
    let bits = [
        (Access::LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE),
        (Access::REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE),
        (Access::REMOTE_READ, IBV_ACCESS_REMOTE_READ),
        (Access::REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC),
    ];
    bits.into_iter().filter(|&(one, _)| access.allows(one)).fold(0, |all, (_, bit)| all | bit)
}

fn modify(functions: &Functions, pair: &Object<ibv_qp>, mut attributes: ibv_qp_attr, mask: c_int) -> Result<()> {
    // SAFETY: a pair that lives; the attributes live during the call.
    let code = unsafe { (functions.ibv_modify_qp)(pair.pointer(), &raw mut attributes, mask | IBV_QP_STATE) };
    check("ibv_modify_qp", code)
}

/// No attribute is set.
fn unset(state: c_int) -> ibv_qp_attr {
    // SAFETY: numbers, and arrays of them.
    ibv_qp_attr { qp_state: state, ..unsafe { zeroed() } }
}

impl VerbsPair {
    /// One step; `number` is the pair's.
    pub(super) fn step(&self, functions: &Functions, port: &VerbsPort, to: To<'_>) -> Result<()> {
        let mut state = self.state.lock();
        if !to.may_follow(*state) {
            return Err(DeviceError::State { number: self.number(), state: *state, asked: to.name() });
        }
        match to {
            To::Init { access } => self.init(functions, port, access)?,
            To::ReadyToReceive { peer, number, first_packet, answer_depth, receive_timer } => {
                let attributes = ibv_qp_attr {
                    path_mtu: c_int::from(peer.mtu.min(port.mtu)),
                    dest_qp_num: number,
                    rq_psn: first_packet,
                    max_dest_rd_atomic: answer_depth,
                    min_rnr_timer: receive_timer,
                    ah_attr: path(port, peer, false),
                    ..unset(IBV_QPS_RTR)
                };
                let mask = IBV_QP_AV
                    | IBV_QP_PATH_MTU
                    | IBV_QP_DEST_QPN
                    | IBV_QP_RQ_PSN
                    | IBV_QP_MAX_DEST_RD_ATOMIC
                    | IBV_QP_MIN_RNR_TIMER;
                modify(functions, &self.pair, attributes, mask)?;
            }
            To::ReadyToSend { first_packet, read_depth, timeout, retries, receive_retries } => {
                let attributes = ibv_qp_attr {
                    sq_psn: first_packet,
                    max_rd_atomic: read_depth,
                    timeout,
                    retry_cnt: retries,
                    rnr_retry: receive_retries,
                    ..unset(IBV_QPS_RTS)
                };
                let mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
                modify(functions, &self.pair, attributes, mask)?;
            }
            To::Reset => modify(functions, &self.pair, unset(IBV_QPS_RESET), 0)?,
            To::Error => {
                // Linux knows no way from reset to the error state but this.
                if *state == State::Reset {
                    self.init(functions, port, Access::NONE)?;
                    *state = State::Init;
                }
                modify(functions, &self.pair, unset(IBV_QPS_ERR), 0)?;
            }
        }
        *state = to.state();
        Ok(())
    }

    fn init(&self, functions: &Functions, port: &VerbsPort, access: Access) -> Result<()> {
        let attributes = ibv_qp_attr {
            pkey_index: port.partition,
            port_num: port.number,
            qp_access_flags: rights(access) as u32,
            ..unset(IBV_QPS_INIT)
        };
        modify(functions, &self.pair, attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
    }

    pub(super) fn number(&self) -> u32 {
        number(&self.pair)
    }
}

pub(super) fn number(pair: &Object<ibv_qp>) -> u32 {
    // SAFETY: the pair lives, and its number does not change.
    unsafe { (*pair.pointer()).qp_num }
}

/// Moves the new datagram pair through all states, so that it sends and receives.
pub(super) fn open_datagrams(functions: &Functions, port: &VerbsPort, pair: &Object<ibv_qp>, key: u32) -> Result<()> {
    let attributes = ibv_qp_attr { pkey_index: port.partition, port_num: port.number, qkey: key, ..unset(IBV_QPS_INIT) };
    modify(functions, pair, attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)?;
    modify(functions, pair, unset(IBV_QPS_RTR), 0)?;
    modify(functions, pair, unset(IBV_QPS_RTS), IBV_QP_SQ_PSN)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{
        super::gid::{Gid, GidKind},
        *,
    };

    const SUBNET: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

    fn port() -> VerbsPort {
        VerbsPort {
            device: "mlx5_0".into(),
            number: 2,
            gid: Gid { index: 5, raw: SUBNET, kind: GidKind::Plain },
            lid: 3,
            mtu: 5,
            longest_message: 1 << 30,
            ethernet: false,
            global: false,
            partition: 1,
            level: 4,
            class: 106,
        }
    }

    fn peer(gid: [u8; 16], global: bool) -> Address {
        Address { gid, lid: 7, mtu: 5, number: 8, key: 9, answers: 16, global }
    }

    #[test]
    fn a_path_has_a_global_part_where_either_end_needs_one() {
        let is_global = |port: &VerbsPort, peer: &Address, always| path(port, peer, always).is_global == 1;
        let (near, far) = (peer(SUBNET, false), peer([0x20; 16], false));
        assert!(!is_global(&port(), &near, false), "inside a subnet");
        assert!(is_global(&port(), &near, true) && is_global(&port(), &far, false));
        assert!(is_global(&port(), &peer(SUBNET, true), false) && is_global(&VerbsPort { global: true, ..port() }, &near, false));
        assert!(is_global(&VerbsPort { ethernet: true, ..port() }, &near, false));
    }

    #[test]
    fn packets_have_the_chosen_level_and_class() {
        let path = path(&port(), &peer(SUBNET, false), true);
        assert_eq!((path.sl, path.grh.traffic_class, path.grh.sgid_index), (4, 106, 5));
        assert_eq!((path.dlid, path.port_num, path.grh.dgid.raw), (7, 2, SUBNET));
    }
}
