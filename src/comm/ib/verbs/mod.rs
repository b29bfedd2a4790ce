//! The device of libibverbs.
//!
//! | file | contents |
//! |---|---|
//! | `library` | the loaded library; its objects |
//! | `port`, `gid`, `partition` | which adapter, port, address and partition are used |
//! | `unusable` | why there is none |
//! | `queues` | how deep queues are |
//! | `pairs` | queue pairs from state to state |
//! | `works` | work requests |
//! | `completions` | completions, and how they wake a thread |
//!
//! # What was run
//!
//! All of it on soft-RoCE (`rdma_rxe` of Linux 6.1) with rdma-core 44, in a virtual machine; nothing on an adapter. Its driver may grant
//! more or fewer bytes of inline data, needs pinned memory for queues too (`ulimit -l`), and answers an atomic at an odd address by an
//! error of the peer, where soft-RoCE refuses the post.
//!
//! # Where Linux and the contract of `Device` differ
//!
//! * From *reset* no step leads to the error state; [`Device::modify`] goes there by way of *init*.
//! * Jobs of three and four ranks over soft-RoCE (Linux 6.1) saw reads reported as done although only a part had come. Each time the kernel
//!   had dropped packets of answers and warned in `rxe_completer`, where a failed work has the status of success. Tests of the bare device
//!   with losses, bursts and drops did not show it. Since gets over soft-RoCE are not reads ([`DeviceLimits::reads`]), it was not seen
//!   again.
//! * A Q_Key whose highest bit is set stands for the sender's own key, so the device's key has that bit cleared.
//!
//! # Source
//! InfiniBand Architecture Specification 1.2.1, chapters 10 and 11; the manual pages of rdma-core.

mod completions;
mod gid;
mod library;
mod pairs;
mod partition;
mod port;
mod queues;
#[cfg(all(test, not(loom)))]
pub(super) mod tests;
mod unusable;
mod works;

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

use rustix::process::{Resource, getrlimit};

pub(super) use port::PortChoice;
pub(super) use unusable::Unusable;

use self::{
    completions::{Alarm, Sources},
    library::Object,
    pairs::{HandleTable, VerbsPair},
    port::VerbsPort,
    queues::Queues,
    works::Receives,
};
use super::{
    device::{
        Access, Address, Completion, Datagram, Depths, Device, DeviceError, DeviceEvent, DeviceLimits, DeviceRegion, Handle,
        Pair, Queue, Result, State, To, Wakes, Work, WorkPiece,
    },
    ffi::*,
};
use crate::comm::kit::mutex::Mutex;

/// The vendor that soft-RoCE names.
const SOFT_ROCE: u32 = 0xFF_FFFF;

/// Bit of a Q_Key that makes adapters send another one.
const OWN_KEY: u32 = 1 << 31;

/// What a device is opened with, besides the user's [`PortChoice`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) depths: Depths,
    /// Bytes of inline data. The driver may grant fewer.
    pub(super) inline: usize,
    /// The Q_Key of datagrams to this device. Its highest bit is cleared.
    pub(super) key: u32,
}

/// One port, opened. The fields are dropped in this order: what may use another is in front of it.
#[derive(Debug)]
pub(super) struct Verbs {
    pairs: HandleTable<VerbsPair>,
    datagrams: Object<ibv_qp>,
    handles: HandleTable<Object<ibv_ah>>,
    shared: Object<ibv_srq>,
    queue: Object<ibv_cq>,
    channel: Object<ibv_comp_channel>,
    regions: HandleTable<Object<ibv_mr>>,
    domain: Object<ibv_pd>,
    context: Object<ibv_context>,
    alarm: Alarm,
    functions: Functions,
    port: VerbsPort,
    limits: DeviceLimits,
    address: Address,
    /// As it was granted.
    datagram_sends: usize,
    start: Instant,
}

impl Verbs {
    /// Opens the port that the user has chosen, or the best one. After the last fork of ranks: devices are no child's.
    ///
    /// # Errors
    /// One line that says what was looked for and what to do.
    pub(super) fn open(choice: &PortChoice, opening: &Opening) -> std::result::Result<Self, Unusable> {
        let functions = library::load()?;
        let (context, port) = port::open(&functions, choice)?;
        let name = port.name();
        Verbs::on(functions, context, port, opening).map_err(|error| match error {
            // Drivers of adapters pin the memory of their queues.
            DeviceError::System { call, code: libc::ENOMEM } => Unusable::Queues { name, call, allowed: pinnable() },
            error => Unusable::Device { name, error },
        })
    }

    /// Looks whether a port can be opened, as [`open`](Self::open).
    ///
    /// # Errors
    /// As there.
    pub(super) fn find(choice: &PortChoice) -> std::result::Result<(), Unusable> {
        port::open(&library::load()?, choice).map(drop)
    }

    fn on(functions: Functions, context: Object<ibv_context>, port: VerbsPort, opening: &Opening) -> Result<Self> {
        let depths = &opening.depths;
        let attributes = port::attributes(&functions, &context)?;
        let entries = queues::within("completions", depths.completions, attributes.max_cqe)?;
        let receives = queues::within("receives", depths.shared_receives, attributes.max_srq_wr)?;
        let datagram_receives = queues::within("receives of datagrams", depths.datagram_receives, attributes.max_qp_wr)?;
        let datagram_sends = queues::within("datagrams that leave", depths.datagram_sends, attributes.max_qp_wr)?;
        library::prepare_for_fork(&functions)?;
        // SAFETY: an open device.
        let domain = unsafe { (functions.ibv_alloc_pd)(context.pointer()) };
        // SAFETY: just made; the device is dropped after it.
        let domain = unsafe { Object::made("ibv_alloc_pd", domain, functions.ibv_dealloc_pd) }?;
        // SAFETY: an open device.
        let channel = unsafe { (functions.ibv_create_comp_channel)(context.pointer()) };
        // SAFETY: just made; the device is dropped after it.
        let channel = unsafe { Object::made("ibv_create_comp_channel", channel, functions.ibv_destroy_comp_channel) }?;
        let alarm = Alarm::new(&context, &channel)?;
        let (queue, completions) = queues::completions(&functions, &context, &channel, entries)?;
        let (shared, shared_receives) = queues::receives(&functions, &domain, receives)?;
        let datagram_queues = Queues { domain: &domain, completions: &queue, shared: None };
        let connected_queues = Queues { shared: Some(&shared), ..datagram_queues };
        let capacity = ibv_qp_cap {
            max_send_wr: datagram_sends,
            max_recv_wr: datagram_receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let (datagrams, granted_datagrams) = queues::pair(&functions, IBV_QPT_UD, datagram_queues, capacity, opening.inline)?;
        // What connected pairs get is tried with one that is given up again.
        let (_, tried) = queues::pair(&functions, IBV_QPT_RC, connected_queues, queues::capacity(1), opening.inline)?;
        let key = opening.key & !OWN_KEY;
        pairs::open_datagrams(&functions, &port, &datagrams, key)?;
        let depth = |limit: c_int| u8::try_from(limit.max(0)).unwrap_or(u8::MAX);
        let inline = tried.max_inline_data.min(granted_datagrams.max_inline_data) as usize;
        let limits = DeviceLimits {
            inline: inline.min(opening.inline),
            read_depth: depth(attributes.max_qp_init_rd_atom),
            answer_depth: depth(attributes.max_qp_rd_atom),
            longest_message: port.longest_message,
            longest_datagram: port.packet(),
            send_depth: attributes.max_qp_wr.max(0) as usize,
            completions,
            shared_receives,
            datagram_receives: granted_datagrams.max_recv_wr as usize,
            pairs: attributes.max_qp.max(0) as usize,
            reads: attributes.vendor_id != SOFT_ROCE,
            virtual_time: false,
        };
        let (number, answers) = (pairs::number(&datagrams), limits.answer_depth);
        let address = Address { gid: port.gid.raw, lid: port.lid, mtu: port.mtu, number, key, answers, global: port.global };
        let datagram_sends = granted_datagrams.max_send_wr as usize;
        Ok(Verbs {
            pairs: HandleTable::default(),
            datagrams,
            handles: HandleTable::default(),
            shared,
            queue,
            channel,
            regions: HandleTable::default(),
            domain,
            context,
            alarm,
            functions,
            port,
            limits,
            address,
            datagram_sends,
            start: Instant::now(),
        })
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            functions: &self.functions,
            context: &self.context,
            channel: &self.channel,
            queue: &self.queue,
            datagrams: self.address.number,
        }
    }
}

/// Says how much memory this process may pin, and what to do about it.
fn pinnable() -> String {
    match getrlimit(Resource::Memlock).current {
        Some(limit) => {
            let limit = limit / 1024;
            format!("ulimit -l allows {limit} KiB: raise it (ulimit -l unlimited, or memlock in /etc/security/limits.conf)")
        }
        None => "ulimit -l sets no limit, so the machine has too little memory".to_owned(),
    }
}

impl Device for Verbs {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    fn address(&self) -> Address {
        self.address
    }

    unsafe fn register(&self, start: *mut u8, len: usize, access: Access) -> Result<DeviceRegion> {
        let remote_changes = access.allows(Access::REMOTE_WRITE) || access.allows(Access::REMOTE_ATOMIC);
        if remote_changes && !access.allows(Access::LOCAL_WRITE) {
            return Err(DeviceError::Invalid("who lets peers write must be allowed to write itself"));
        }
        // SAFETY: the caller's promise; what is not mapped is refused.
        let region = unsafe { (self.functions.ibv_reg_mr)(self.domain.pointer(), start.cast(), len, pairs::rights(access)) };
        // SAFETY: just made; the domain is dropped after it.
        let region = unsafe { Object::made("ibv_reg_mr", region, self.functions.ibv_dereg_mr) };
        let region = region.map_err(|error| match error {
            DeviceError::System { code: libc::ENOMEM, .. } => DeviceError::Memory { asked: len, allowed: pinnable() },
            error => error,
        })?;
        // SAFETY: the region lives, and its keys do not change.
        let (local, remote) = unsafe { ((*region.pointer()).lkey, (*region.pointer()).rkey) };
        Ok(DeviceRegion { local, remote, id: self.regions.add(region) })
    }

    fn deregister(&self, region: DeviceRegion) -> Result<()> {
        self.regions.remove("region", region.id)?.destroy("ibv_dereg_mr")
    }

    fn create(&self, depth: usize) -> Result<Pair> {
        let depth = queues::within("works of a send queue", depth, self.limits.send_depth as c_int)?;
        let mut capacity = ibv_qp_cap { max_inline_data: self.limits.inline as u32, ..queues::capacity(depth) };
        let queues = Queues { domain: &self.domain, completions: &self.queue, shared: Some(&self.shared) };
        let pair = queues::create(&self.functions, IBV_QPT_RC, queues, &mut capacity)?;
        let number = pairs::number(&pair);
        let id = self.pairs.add(VerbsPair { pair, state: Mutex::new(State::Reset) });
        Ok(Pair { id, number })
    }

    fn modify(&self, pair: Pair, to: To<'_>) -> Result<()> {
        self.pairs.with("queue pair", pair.id, |connected| connected.step(&self.functions, &self.port, to))
    }

    fn destroy(&self, pair: Pair) -> Result<()> {
        self.pairs.remove("queue pair", pair.id)?.pair.destroy("ibv_destroy_qp")
    }

    unsafe fn post(&self, pair: Pair, works: &[Work]) -> Result<usize> {
        self.alarm.check()?;
        self.pairs.with("queue pair", pair.id, |connected| {
            let state = connected.state.lock();
            if !matches!(*state, State::ReadyToSend | State::Error) {
                return Err(DeviceError::State { number: pair.number, state: *state, asked: "a post" });
            }
            // SAFETY: the caller's promise.
            unsafe { works::post(&connected.pair, works, &self.limits) }
        })
    }

    unsafe fn post_receive(&self, queue: Queue, id: u64, piece: WorkPiece) -> Result<()> {
        self.alarm.check()?;
        let (receives, queue, depth) = match queue {
            Queue::Shared => (Receives::Shared(&self.shared), "the shared receive queue", self.limits.shared_receives),
            Queue::Datagram => (Receives::Own(&self.datagrams), "the receive queue of datagrams", self.limits.datagram_receives),
        };
        // SAFETY: the caller's promise.
        let taken = unsafe { works::post_receive(receives, id, piece) }?;
        if taken { Ok(()) } else { Err(DeviceError::Full { queue, depth }) }
    }

    fn handle(&self, to: &Address) -> Result<Handle> {
        let mut path = pairs::path(&self.port, to, true);
        // SAFETY: the domain lives, and the attributes during the call.
        let handle = unsafe { (self.functions.ibv_create_ah)(self.domain.pointer(), &raw mut path) };
        // SAFETY: just made; the domain is dropped after it.
        let handle = unsafe { Object::made("ibv_create_ah", handle, self.functions.ibv_destroy_ah) }?;
        Ok(Handle { id: self.handles.add(handle) })
    }

    fn release(&self, handle: Handle) -> Result<()> {
        self.handles.remove("handle", handle.id)?.destroy("ibv_destroy_ah")
    }

    unsafe fn post_datagram(&self, datagram: &Datagram) -> Result<()> {
        self.alarm.check()?;
        self.handles.with("handle", datagram.to.id, |handle| {
            // SAFETY: the caller's promise.
            let taken = unsafe { works::post_datagram(&self.datagrams, handle, datagram, &self.limits) }?;
            if taken {
                Ok(())
            } else {
                Err(DeviceError::Full { queue: "the send queue of datagrams", depth: self.datagram_sends })
            }
        })
    }

    fn poll(&self, completions: &mut Vec<Completion>, most: usize) -> Result<()> {
        self.alarm.check()?;
        completions::take(&self.queue, self.address.number, completions, most)
    }

    fn arm(&self, wakes: Wakes) -> Result<()> {
        self.alarm.check()?;
        self.alarm.arm(self.sources(), wakes)
    }

    fn wait(&self, limit: Duration) -> Result<bool> {
        self.alarm.wait(self.sources(), limit)
    }

    fn event(&self) -> Option<DeviceEvent> {
        self.alarm.event(self.sources())
    }
}
