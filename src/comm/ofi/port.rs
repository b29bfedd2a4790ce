//! The objects of one endpoint, and calls on them.

use std::{
    ffi::{c_int, c_void},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    ptr::{self, NonNull},
};

use super::{
    ffi::*,
    library::{Offer, text},
};

/// Bytes of the longest address of an endpoint.
pub(super) const ADDRESS: usize = 64;

/// Providers whose completion queues wake a thread that waits for them. `net` of libfabric 1.17 misses arrivals, `shm` has none, and with others it
/// was not tried.
const WAITS: [&str; 2] = ["tcp;ofi_rxm", "sockets"];

/// Completions that may wait.
const COMPLETIONS: usize = 1024;

/// Completions that are taken at a time.
const BATCH: usize = 16;

/// Calls an entry of a table. Unsafe as [`entry`] is, and as the entry.
macro_rules! call {
    ($table:expr, $type:ident . $entry:ident, $name:literal, $($argument:expr),*) => {
        entry!($table, $type.$entry).ok_or(concat!("this libfabric has no ", $name)).map(|call| call($($argument),*))
    };
}

/// An enabled endpoint of reliable datagrams, its completion queue and the addresses of its peers.
///
/// Calls come from one thread at a time, and libfabric relies on that.
#[derive(Debug)]
pub(super) struct OfiPort {
    library: Functions,
    info: NonNull<fi_info>,
    offer: Offer,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    queue: *mut fid_cq,
    peers: *mut fid_av,
    endpoint: *mut fid_ep,
}

// SAFETY: libfabric ties no object to a thread.
unsafe impl Send for OfiPort {}

/// A completion queue that can be waited for, while its port is open.
#[derive(Debug)]
pub(super) struct QueueWait {
    fabric: *mut fid_fabric,
    queue: *mut fid,
}

// SAFETY: libfabric ties no object to a thread.
unsafe impl Send for QueueWait {}

impl QueueWait {
    /// Returns true if the queue is empty, and its descriptor will tell when it is not.
    pub(super) fn may_wait(&self) -> bool {
        let (fabric, mut queue) = (self.fabric, self.queue);
        // SAFETY: both are open: the queue's owner says when it closes them.
        unsafe { call!((*fabric).ops, fi_ops_fabric.trywait, "fi_trywait", fabric, &raw mut queue, 1) == Ok(0) }
    }
}

/// Memory that a port knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortRegion(NonNull<fid_mr>);

// SAFETY: as for `OfiPort`.
unsafe impl Send for PortRegion {}

/// The other side of a read or a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteBytes {
    /// The peer's number at this port.
    pub(super) peer: u64,
    pub(super) address: u64,
    pub(super) key: u64,
}

/// This side of a read, a write or a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalBytes {
    pub(super) start: *mut u8,
    pub(super) len: usize,
    /// The region, where the provider asks for one.
    pub(super) region: Option<PortRegion>,
}

impl LocalBytes {
    fn descriptor(&self) -> *mut c_void {
        // SAFETY: a region that was not closed.
        self.region.map_or(ptr::null_mut(), |region| unsafe { (*region.0.as_ptr()).mem_desc })
    }
}

/// Why a port is not open.
#[derive(Debug)]
pub(super) enum Unopened {
    /// The provider is not there, or has no offer that will do.
    Lacks(String),
    /// It has one, which cannot be opened; or there is no library.
    Fails(String),
}

/// What a completion queue says.
pub(super) enum Polled {
    Nothing,
    Ended,
    Failed { context: *mut c_void, why: String },
}

impl OfiPort {
    /// Opens the first offer of a provider that `suits`, if a domain is named one of that.
    ///
    /// # Errors
    /// See [`Unopened`].
    pub(super) fn open(
        provider: &str,
        domain: Option<&str>,
        suits: impl Fn(&str, &Offer) -> Result<(), String>,
    ) -> Result<Self, Unopened> {
        let library = Functions::load().map_err(Unopened::Fails)?;
        let (info, offer) = library.find(provider, domain, suits).map_err(Unopened::Lacks)?;
        let null = ptr::null_mut::<fid>();
        let mut port = OfiPort {
            library,
            info,
            offer,
            fabric: null.cast(),
            domain: null.cast(),
            queue: null.cast(),
            peers: null.cast(),
            endpoint: null.cast(),
        };
        port.make(WAITS.contains(&&*port.provider())).map_err(Unopened::Fails)?;
        Ok(port)
    }

    /// Makes the objects, each of which is closed by [`close`](Self::close).
    fn make(&mut self, waits: bool) -> Result<(), String> {
        let (library, info, null) = (self.library, self.info.as_ptr(), ptr::null_mut::<c_void>());
        // SAFETY: the library's own list, and what it made of it; places for one object each.
        unsafe {
            library.check("fi_fabric", (library.fi_fabric)((*info).fabric_attr, &raw mut self.fabric, null))?;
            let made =
                call!((*self.fabric).ops, fi_ops_fabric.domain, "fi_domain", self.fabric, info, &raw mut self.domain, null)?;
            library.check("fi_domain", made)?;
            let table = (*self.domain).ops;
            let mut attributes: fi_cq_attr = std::mem::zeroed();
            (attributes.format, attributes.size) = (FI_CQ_FORMAT_MSG, COMPLETIONS);
            attributes.wait_obj = if waits { FI_WAIT_FD } else { FI_WAIT_NONE };
            let place = (&raw mut attributes, &raw mut self.queue);
            let made = call!(table, fi_ops_domain.cq_open, "fi_cq_open", self.domain, place.0, place.1, null)?;
            library.check("fi_cq_open", made)?;
            let mut attributes: fi_av_attr = std::mem::zeroed();
            attributes.r#type = FI_AV_TABLE;
            let place = (&raw mut attributes, &raw mut self.peers);
            let made = call!(table, fi_ops_domain.av_open, "fi_av_open", self.domain, place.0, place.1, null)?;
            library.check("fi_av_open", made)?;
            let made = call!(table, fi_ops_domain.endpoint, "fi_endpoint", self.domain, info, &raw mut self.endpoint, null)?;
            library.check("fi_endpoint", made)?;
            let own = self.endpoint.cast::<fid>();
            self.bind(own, self.queue.cast(), FI_SEND | FI_RECV)?;
            self.bind(own, self.peers.cast(), 0)?;
            self.enable(own)
        }
    }

    /// # Safety
    /// Both are open.
    unsafe fn bind(&self, object: *mut fid, to: *mut fid, flags: u64) -> Result<(), String> {
        // SAFETY: the caller's promise.
        let code = unsafe { call!((*object).ops, fi_ops.bind, "fi_bind", object, to, flags) }?;
        self.library.check("fi_bind", code)
    }

    /// # Safety
    /// It is open.
    unsafe fn enable(&self, object: *mut fid) -> Result<(), String> {
        // SAFETY: the caller's promise.
        let code = unsafe { call!((*object).ops, fi_ops.control, "fi_control", object, FI_ENABLE, ptr::null_mut()) }?;
        self.library.check("fi_enable", code)
    }

    /// A copy of the descriptor of the completion queue, and what tells when a thread may wait for it. None if it cannot be waited for.
    pub(super) fn wait(&self) -> Option<(OwnedFd, QueueWait)> {
        let (queue, mut descriptor) = (self.queue.cast::<fid>(), -1);
        let place = (&raw mut descriptor).cast();
        // SAFETY: an open queue, and a place for a descriptor, which the queue keeps.
        unsafe {
            let code = call!((*queue).ops, fi_ops.control, "fi_control", queue, FI_GETWAIT, place).ok()?;
            let is_one = code == 0 && descriptor >= 0;
            let copy = is_one.then(|| BorrowedFd::borrow_raw(descriptor).try_clone_to_owned())?.ok()?;
            Some((copy, QueueWait { fabric: self.fabric, queue }))
        }
    }

    /// The provider's own name.
    pub(super) fn provider(&self) -> String {
        // SAFETY: the list lives as long as the port.
        text(unsafe { (*(*self.info.as_ptr()).fabric_attr).prov_name })
    }

    pub(super) fn offer(&self) -> &Offer {
        &self.offer
    }

    /// The endpoint's address, with zeros behind it, and its length.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn address(&self) -> Result<([u8; ADDRESS], usize), String> {
        let (mut address, mut len) = ([0; ADDRESS], ADDRESS);
        let own = self.endpoint.cast::<fid>();
        let place = (address.as_mut_ptr().cast(), &raw mut len);
        // SAFETY: an enabled endpoint, and a place for its address.
        let code = unsafe { call!((*self.endpoint).cm, fi_ops_cm.getname, "fi_getname", own, place.0, place.1) }?;
        self.library.check("fi_getname", code)?;
        Ok((address, len))
    }

    /// Enters the address of a peer. Returns its number.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn enter(&mut self, address: &[u8; ADDRESS]) -> Result<u64, String> {
        let mut number = 0;
        let (from, place) = (address.as_ptr().cast(), &raw mut number);
        // SAFETY: an address of this provider, and a place for its number.
        let code = unsafe {
            call!((*self.peers).ops, fi_ops_av.insert, "fi_av_insert", self.peers, from, 1, place, 0, ptr::null_mut())
        }?;
        match code {
            1 => Ok(number),
            0 => Err("fi_av_insert: the address is not one of this provider".to_owned()),
            code => Err(self.library.refused("fi_av_insert", -code)),
        }
    }

    /// Registers memory, for the rank itself or also for peers. Keys that are asked for differ.
    ///
    /// # Safety
    /// It stays mapped until it is deregistered or the port is closed.
    ///
    /// # Errors
    /// What the library says.
    pub(super) unsafe fn register(&self, start: *mut u8, len: usize, remote: bool, key: u64) -> Result<PortRegion, String> {
        let local = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
        let access = if remote { local | FI_REMOTE_READ | FI_REMOTE_WRITE } else { local };
        let (mut region, null) = (ptr::null_mut::<fid_mr>(), ptr::null_mut());
        let (domain, start, place) = (self.domain, start.cast_const().cast(), &raw mut region);
        // SAFETY: the caller's promise, and a place for the object.
        let code = unsafe {
            call!((*domain).mr, fi_ops_mr.reg, "fi_mr_reg", domain.cast(), start, len, access, 0, key, 0, place, null)
        }?;
        self.library.check(&format!("fi_mr_reg of {len} bytes"), code)?;
        let region = NonNull::new(region).map(PortRegion).ok_or("fi_mr_reg: no region")?;
        if self.offer().registers(FI_MR_ENDPOINT) {
            let object = region.0.as_ptr().cast::<fid>();
            // SAFETY: both are open; a region that cannot be used is closed.
            unsafe {
                let bound = self.bind(object, self.endpoint.cast(), 0).and_then(|()| self.enable(object));
                if bound.is_err() {
                    close(object);
                }
                bound?;
            }
        }
        Ok(region)
    }

    /// What peers name the first byte of a region by, and its key.
    pub(super) fn named(&self, region: PortRegion, start: *mut u8) -> (u64, u64) {
        let address = if self.offer().registers(FI_MR_VIRT_ADDR) { start.expose_provenance() as u64 } else { 0 };
        // SAFETY: it is open.
        (address, unsafe { (*region.0.as_ptr()).key })
    }

    /// Nothing reads or writes the memory through the port any more.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn deregister(&self, region: PortRegion) -> Result<(), String> {
        // SAFETY: it is open, and nobody uses it again.
        let code = unsafe { close(region.0.as_ptr().cast()) };
        self.library.check("fi_close of a region", code)
    }

    /// Begins a write. False if the port is full.
    ///
    /// # Safety
    /// The bytes and the context stay as they are until the end is reported.
    ///
    /// # Errors
    /// What the library says.
    pub(super) unsafe fn write(
        &self,
        from: LocalBytes,
        to: RemoteBytes,
        flags: u64,
        context: *mut c_void,
    ) -> Result<bool, String> {
        let piece = libc::iovec { iov_base: from.start.cast(), iov_len: from.len };
        let target = fi_rma_iov { addr: to.address, len: from.len, key: to.key };
        let mut local = from.descriptor();
        let message = fi_msg_rma {
            msg_iov: &raw const piece,
            desc: &raw mut local,
            iov_count: 1,
            addr: to.peer,
            rma_iov: &raw const target,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        // SAFETY: the caller's promise; what the message points to lives during the call.
        let code =
            unsafe { call!((*self.endpoint).rma, fi_ops_rma.writemsg, "fi_writemsg", self.endpoint, &raw const message, flags) }?;
        self.is_taken("fi_writemsg", code)
    }

    /// Begins a write whose bytes are free when it returns. Its end is not reported.
    ///
    /// # Safety
    /// The bytes are readable, no more than the provider injects.
    ///
    /// # Errors
    /// What the library says.
    pub(super) unsafe fn inject_write(&self, from: LocalBytes, to: RemoteBytes) -> Result<bool, String> {
        let (start, RemoteBytes { peer, address, key }) = (from.start.cast_const().cast(), to);
        // SAFETY: the caller's promise.
        let code = unsafe {
            let table = (*self.endpoint).rma;
            call!(table, fi_ops_rma.inject, "fi_inject_write", self.endpoint, start, from.len, peer, address, key)
        }?;
        self.is_taken("fi_inject_write", code)
    }

    /// Begins a read.
    ///
    /// # Safety
    /// Nobody touches the bytes until the end is reported.
    ///
    /// # Errors
    /// What the library says.
    pub(super) unsafe fn read(&self, to: LocalBytes, from: RemoteBytes, context: *mut c_void) -> Result<bool, String> {
        let (start, local, RemoteBytes { peer, address, key }) = (to.start.cast(), to.descriptor(), from);
        // SAFETY: the caller's promise.
        let code = unsafe {
            let table = (*self.endpoint).rma;
            call!(table, fi_ops_rma.read, "fi_read", self.endpoint, start, to.len, local, peer, address, key, context)
        }?;
        self.is_taken("fi_read", code)
    }

    /// Begins a message. Without a context its bytes are free when it returns, and its end is not reported.
    ///
    /// # Safety
    /// With one, the bytes stay as they are until the end is reported. Without, they are no more than the provider injects.
    ///
    /// # Errors
    /// What the library says.
    pub(super) unsafe fn send(&self, from: LocalBytes, to: u64, context: Option<*mut c_void>) -> Result<bool, String> {
        let (table, start, local) = ((self.endpoint), from.start.cast_const().cast(), from.descriptor());
        // SAFETY: the caller's promise.
        let code = unsafe {
            let messages = (*table).msg;
            match context {
                None => call!(messages, fi_ops_msg.inject, "fi_inject", table, start, from.len, to),
                Some(context) => call!(messages, fi_ops_msg.send, "fi_send", table, start, from.len, local, to, context),
            }
        }?;
        self.is_taken("fi_send", code)
    }

    /// Begins to receive a message of any peer.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    ///
    /// # Errors
    /// What the library says.
    pub(super) unsafe fn receive(&self, to: LocalBytes, context: *mut c_void) -> Result<bool, String> {
        let (start, local) = (to.start.cast(), to.descriptor());
        // SAFETY: the caller's promise.
        let code = unsafe {
            let table = (*self.endpoint).msg;
            call!(table, fi_ops_msg.recv, "fi_recv", self.endpoint, start, to.len, local, FI_ADDR_UNSPEC, context)
        }?;
        self.is_taken("fi_recv", code)
    }

    fn is_taken(&self, call: &str, code: isize) -> Result<bool, String> {
        match code {
            0 => Ok(true),
            code if code == -(FI_EAGAIN as isize) => Ok(false),
            code => Err(self.library.refused(call, -code as c_int)),
        }
    }

    /// Takes some completions, each with its context and its length. Providers without a thread of their own make progress by it.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn poll(&self, mut each: impl FnMut(*mut c_void, usize)) -> Result<Polled, String> {
        let mut entries = [const { MaybeUninit::<fi_cq_msg_entry>::uninit() }; BATCH];
        let (queue, place) = (self.queue, entries.as_mut_ptr().cast());
        // SAFETY: an open queue, and places for so many entries.
        let code = unsafe { call!((*queue).ops, fi_ops_cq.read, "fi_cq_read", queue, place, BATCH) }?;
        if let Ok(count) = usize::try_from(code) {
            for entry in &entries[..count] {
                // SAFETY: filled by the call.
                let entry = unsafe { entry.assume_init_ref() };
                each(entry.op_context, entry.len);
            }
            return Ok(if count > 0 { Polled::Ended } else { Polled::Nothing });
        }
        match -code as c_int {
            FI_EAGAIN => Ok(Polled::Nothing),
            FI_EAVAIL => self.failure(),
            code => Err(self.library.refused("fi_cq_read", code)),
        }
    }

    fn failure(&self) -> Result<Polled, String> {
        let queue = self.queue;
        // SAFETY: an open queue, and a place for the entry, in which zeros are valid.
        let (code, entry) = unsafe {
            let mut entry: fi_cq_err_entry = std::mem::zeroed();
            (call!((*queue).ops, fi_ops_cq.readerr, "fi_cq_readerr", queue, &raw mut entry, 0)?, entry)
        };
        if code != 1 {
            return Ok(Polled::Nothing);
        }
        Ok(Polled::Failed { context: entry.op_context, why: self.library.text(entry.err) })
    }

    /// Closes all objects, and the regions that are left. Nothing of the port touches memory any more.
    pub(super) fn close(&mut self, regions: impl Iterator<Item = PortRegion>) {
        let mut endpoint = Some(std::mem::replace(&mut self.endpoint, ptr::null_mut()).cast::<fid>());
        // Regions that belong to the endpoint are closed before it. Others outlive works that may use them.
        let before = endpoint.take_if(|_| !self.offer().registers(FI_MR_ENDPOINT));
        let objects = [
            std::mem::replace(&mut self.peers, ptr::null_mut()).cast(),
            std::mem::replace(&mut self.queue, ptr::null_mut()).cast(),
            std::mem::replace(&mut self.domain, ptr::null_mut()).cast(),
            std::mem::replace(&mut self.fabric, ptr::null_mut()).cast(),
        ];
        let regions = regions.map(|region| region.0.as_ptr().cast::<fid>());
        for object in before.into_iter().chain(regions).chain(endpoint).chain(objects).filter(|object| !object.is_null()) {
            // SAFETY: open, and what stands on it was closed before.
            unsafe { close(object) };
        }
    }
}

impl Drop for OfiPort {
    fn drop(&mut self) {
        self.close(std::iter::empty());
        // SAFETY: an entry of its own, which nobody uses.
        unsafe { (self.library.fi_freeinfo)(self.info.as_ptr()) };
    }
}

/// # Safety
/// It is open, and nobody uses it again.
unsafe fn close(object: *mut fid) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call!((*object).ops, fi_ops.close, "fi_close", object) }.unwrap_or(0)
}
