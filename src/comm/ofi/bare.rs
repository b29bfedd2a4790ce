//! An endpoint without any layer: what a program costs that calls libfabric itself.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr::{self, NonNull},
};

use super::ffi::*;

/// Bytes of an address in a card.
const NAME: usize = 64;

/// How writes become visible to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visible {
    /// A read behind them has brought its answer.
    ByRead,
    /// They are complete.
    ByCompletion,
}

/// An endpoint with one peer, and memory that the peer may read and write. One operation at a time.
#[derive(Debug)]
pub struct BareEndpoint {
    functions: Functions,
    info: NonNull<fi_info>,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    queue: *mut fid_cq,
    peers: *mut fid_av,
    endpoint: *mut fid_ep,
    region: *mut fid_mr,
    /// In words, so that it is aligned.
    memory: Vec<u64>,
    /// The number of the peer, the address of its memory as works name it, and the key.
    peer: (u64, u64, u64),
    visible: Visible,
    /// What providers keep of an operation.
    context: Box<[u64; 8]>,
}

impl BareEndpoint {
    /// Opens an endpoint of a provider, with `bytes` of memory.
    ///
    /// # Errors
    /// What is missing, or what the library says.
    pub fn open(provider: &str, bytes: usize) -> Result<Self, String> {
        let functions = Functions::load()?;
        let info = find(&functions, provider)?;
        let memory = vec![0_u64; bytes.div_ceil(8)];
        let null = ptr::null_mut::<fid>();
        let mut bare = BareEndpoint {
            functions,
            info,
            fabric: null.cast(),
            domain: null.cast(),
            queue: null.cast(),
            peers: null.cast(),
            endpoint: null.cast(),
            region: null.cast(),
            memory,
            peer: (0, 0, 0),
            visible: Visible::ByCompletion,
            context: Box::default(),
        };
        bare.make()?;
        Ok(bare)
    }

    /// Makes the objects, each of which is closed by `drop`.
    fn make(&mut self) -> Result<(), String> {
        let (library, info, null) = (self.functions, self.info.as_ptr(), ptr::null_mut::<c_void>());
        // SAFETY: the library's own list, and what it made of it; places for one object each.
        unsafe {
            library.check("fi_fabric", (library.fi_fabric)((*info).fabric_attr, &raw mut self.fabric, null))?;
            let domain = entry!((*self.fabric).ops, fi_ops_fabric.domain).ok_or("no fi_domain")?;
            library.check("fi_domain", domain(self.fabric, info, &raw mut self.domain, null))?;
            let mut attributes: fi_cq_attr = std::mem::zeroed();
            (attributes.format, attributes.wait_obj) = (FI_CQ_FORMAT_MSG, FI_WAIT_NONE);
            let open = entry!((*self.domain).ops, fi_ops_domain.cq_open).ok_or("no fi_cq_open")?;
            library.check("fi_cq_open", open(self.domain, &raw mut attributes, &raw mut self.queue, null))?;
            let mut attributes: fi_av_attr = std::mem::zeroed();
            attributes.r#type = FI_AV_TABLE;
            let open = entry!((*self.domain).ops, fi_ops_domain.av_open).ok_or("no fi_av_open")?;
            library.check("fi_av_open", open(self.domain, &raw mut attributes, &raw mut self.peers, null))?;
            let open = entry!((*self.domain).ops, fi_ops_domain.endpoint).ok_or("no fi_endpoint")?;
            library.check("fi_endpoint", open(self.domain, info, &raw mut self.endpoint, null))?;
            let own = self.endpoint.cast::<fid>();
            let bind = entry!((*own).ops, fi_ops.bind).ok_or("no fi_ep_bind")?;
            library.check("fi_ep_bind", bind(own, self.queue.cast(), FI_SEND | FI_RECV))?;
            library.check("fi_ep_bind", bind(own, self.peers.cast(), 0))?;
            let control = entry!((*own).ops, fi_ops.control).ok_or("no fi_enable")?;
            library.check("fi_enable", control(own, FI_ENABLE, null))?;
            let access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
            let (start, len) = (self.memory.as_ptr().cast(), 8 * self.memory.len());
            let register = entry!((*self.domain).mr, fi_ops_mr.reg).ok_or("no fi_mr_reg")?;
            library.check("fi_mr_reg", register(self.domain.cast(), start, len, access, 0, 1, 0, &raw mut self.region, null))?;
            if self.mode() & FI_MR_ENDPOINT != 0 {
                let region = self.region.cast::<fid>();
                let bind = entry!((*region).ops, fi_ops.bind).ok_or("no fi_mr_bind")?;
                library.check("fi_mr_bind", bind(region, own, 0))?;
                let control = entry!((*region).ops, fi_ops.control).ok_or("no fi_mr_enable")?;
                library.check("fi_mr_enable", control(region, FI_ENABLE, null))?;
            }
            if (*(*info).tx_attr).msg_order & FI_ORDER_RAW != 0 {
                self.visible = Visible::ByRead;
            }
        }
        Ok(())
    }

    /// The modes in which the provider wants memory registered.
    fn mode(&self) -> i32 {
        // SAFETY: the library's list, which lives as long as self.
        unsafe { (*(*self.info.as_ptr()).domain_attr).mr_mode }
    }

    /// What the peer needs to know: the endpoint's address, and where its memory is.
    ///
    /// # Errors
    /// What the library says.
    pub fn card(&self) -> Result<[u8; NAME + 16], String> {
        let (mut card, mut len) = ([0; NAME + 16], NAME);
        let own = self.endpoint.cast::<fid>();
        // SAFETY: an enabled endpoint, and a place for its address.
        unsafe {
            let name = entry!((*self.endpoint).cm, fi_ops_cm.getname).ok_or("no fi_getname")?;
            self.functions.check("fi_getname", name(own, card.as_mut_ptr().cast(), &raw mut len))?;
            let start = if self.mode() & FI_MR_VIRT_ADDR != 0 { self.memory.as_ptr().expose_provenance() as u64 } else { 0 };
            card[NAME..NAME + 8].copy_from_slice(&start.to_ne_bytes());
            card[NAME + 8..].copy_from_slice(&(*self.region).key.to_ne_bytes());
        }
        Ok(card)
    }

    /// Enters the peer.
    ///
    /// # Errors
    /// What the library says.
    pub fn meet(&mut self, card: &[u8; NAME + 16]) -> Result<(), String> {
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|k| card[at + k]));
        self.peer = (0, word(NAME), word(NAME + 8));
        // SAFETY: an address of this provider, and a place for its number.
        unsafe {
            let insert = entry!((*self.peers).ops, fi_ops_av.insert).ok_or("no fi_av_insert")?;
            let count = insert(self.peers, card.as_ptr().cast(), 1, &raw mut self.peer.0, 0, ptr::null_mut());
            if count == 1 { Ok(()) } else { self.functions.check("fi_av_insert", if count < 0 { count } else { -1 }) }
        }
    }

    /// Writes the first bytes of this memory into the peer's, and waits until they are visible there.
    ///
    /// # Errors
    /// What the library says.
    pub fn put(&mut self, len: usize) -> Result<(), String> {
        let (here, context) = (self.memory.as_mut_ptr(), (&raw mut *self.context).cast::<c_void>());
        let (peer, there, key) = self.peer;
        // SAFETY: registered memory here and there; it stays until the work is complete.
        unsafe {
            let mut local = (*self.region).mem_desc;
            let piece = libc::iovec { iov_base: here.cast(), iov_len: len };
            let target = fi_rma_iov { addr: there, len, key };
            let message = fi_msg_rma {
                msg_iov: &raw const piece,
                desc: &raw mut local,
                iov_count: 1,
                addr: peer,
                rma_iov: &raw const target,
                rma_iov_count: 1,
                context,
                data: 0,
            };
            let flags = if self.visible == Visible::ByRead { FI_COMPLETION } else { FI_COMPLETION | FI_DELIVERY_COMPLETE };
            let write = entry!((*self.endpoint).rma, fi_ops_rma.writemsg).ok_or("no fi_writemsg")?;
            while self.waits("fi_writemsg", write(self.endpoint, &raw const message, flags))? {}
        }
        self.complete()?;
        if self.visible == Visible::ByRead { self.get(8) } else { Ok(()) }
    }

    /// Reads the first bytes of the peer's memory, into the upper half of this one.
    ///
    /// # Errors
    /// What the library says.
    pub fn get(&mut self, len: usize) -> Result<(), String> {
        let context = (&raw mut *self.context).cast::<c_void>();
        let (peer, there, key) = self.peer;
        let half = self.memory.len() / 2;
        let here = self.memory[half..][..len.div_ceil(8)].as_mut_ptr();
        // SAFETY: registered memory here and there; it stays until the work is complete.
        unsafe {
            let read = entry!((*self.endpoint).rma, fi_ops_rma.read).ok_or("no fi_read")?;
            let local = (*self.region).mem_desc;
            while self.waits("fi_read", read(self.endpoint, here.cast(), len, local, peer, there, key, context))? {}
        }
        self.complete()
    }

    /// Whether a call has to be made again. Looks at the queue meanwhile, without which nothing would change.
    fn waits(&self, call: &str, code: isize) -> Result<bool, String> {
        if code == -(FI_EAGAIN as isize) {
            self.poll()?;
            return Ok(true);
        }
        self.functions.check(call, code as c_int).map(|()| false)
    }

    /// Waits for a completion.
    fn complete(&self) -> Result<(), String> {
        while !self.poll()? {}
        Ok(())
    }

    /// Looks at the queue, by which a provider without a thread of its own makes progress. True if an operation is complete.
    ///
    /// # Errors
    /// What the library says.
    pub fn poll(&self) -> Result<bool, String> {
        // SAFETY: an open queue, and places for an entry.
        unsafe {
            let mut entry: fi_cq_msg_entry = std::mem::zeroed();
            let read = entry!((*self.queue).ops, fi_ops_cq.read).ok_or("no fi_cq_read")?;
            match read(self.queue, (&raw mut entry).cast(), 1) {
                1 => Ok(true),
                code if code == -(FI_EAGAIN as isize) => Ok(false),
                code if code == -(FI_EAVAIL as isize) => {
                    let mut error: fi_cq_err_entry = std::mem::zeroed();
                    let read = entry!((*self.queue).ops, fi_ops_cq.readerr).ok_or("no fi_cq_readerr")?;
                    read(self.queue, &raw mut error, 0);
                    Err(self.functions.refused("an operation", error.err))
                }
                code => Err(self.functions.refused("fi_cq_read", -(code as c_int))),
            }
        }
    }
}

impl Drop for BareEndpoint {
    fn drop(&mut self) {
        let objects: [*mut fid; 6] = [
            self.endpoint.cast(),
            self.region.cast(),
            self.peers.cast(),
            self.queue.cast(),
            self.domain.cast(),
            self.fabric.cast(),
        ];
        for object in objects.into_iter().filter(|object| !object.is_null()) {
            // SAFETY: open, and what stands on it was closed before.
            unsafe {
                if let Some(close) = entry!((*object).ops, fi_ops.close) {
                    close(object);
                }
            }
        }
        // SAFETY: a list of the library, which nobody uses.
        unsafe { (self.functions.fi_freeinfo)(self.info.as_ptr()) };
    }
}

/// The first offer of a provider for reliable endpoints with messages, reads and writes.
fn find(functions: &Functions, provider: &str) -> Result<NonNull<fi_info>, String> {
    let name = CString::new(provider).map_err(|error| error.to_string())?;
    // SAFETY: a list of hints that the library makes, fills with defaults and frees; it frees the name too, so that is its C library's.
    unsafe {
        let hints = (functions.fi_dupinfo)(ptr::null());
        if hints.is_null() {
            return Err("fi_allocinfo: no memory".to_owned());
        }
        (*hints).caps = FI_MSG | FI_RMA;
        (*hints).mode = FI_CONTEXT | FI_CONTEXT2;
        (*(*hints).ep_attr).r#type = FI_EP_RDM;
        let domain = (*hints).domain_attr;
        (*domain).threading = FI_THREAD_DOMAIN;
        (*domain).resource_mgmt = FI_RM_ENABLED;
        (*domain).av_type = FI_AV_TABLE;
        (*domain).mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
        (*(*hints).fabric_attr).prov_name = libc::strdup(name.as_ptr());
        let mut found = ptr::null_mut();
        let code = (functions.fi_getinfo)(API, ptr::null(), ptr::null(), 0, hints, &raw mut found);
        (functions.fi_freeinfo)(hints);
        functions.check(&format!("fi_getinfo of provider {provider}"), code)?;
        NonNull::new(found).ok_or_else(|| format!("fi_getinfo of provider {provider}: an empty list"))
    }
}

impl Functions {
    fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        if code == 0 { Ok(()) } else { Err(self.refused(call, -code)) }
    }

    fn refused(&self, call: &str, code: c_int) -> String {
        // SAFETY: a text of the library, which lasts.
        let text = unsafe { CStr::from_ptr((self.fi_strerror)(code)) };
        format!("{call}: {}", text.to_string_lossy())
    }
}
