//! What the library offers, and how it says what is wrong.

use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr::{self, NonNull},
};

use super::ffi::*;

/// An offer of a provider, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) caps: u64,
    /// What the provider asks of its callers, and bytes that they leave free in front of a message.
    pub(super) mode: u64,
    pub(super) prefix: usize,
    /// Orders that both sides keep.
    pub(super) orders: u64,
    pub(super) registration: i32,
    pub(super) inject: usize,
    pub(super) longest: usize,
    /// Bytes up to which a read is ordered behind a write, and a write behind a write.
    pub(super) read_behind_write: usize,
    pub(super) write_behind_write: usize,
}

impl Offer {
    /// # Safety
    /// An entry of a list of the library.
    unsafe fn of(info: *const fi_info) -> Self {
        // SAFETY: the library fills in all attributes of what it offers.
        unsafe {
            let (sends, receives, endpoint) = (&*(*info).tx_attr, &*(*info).rx_attr, &*(*info).ep_attr);
            Offer {
                caps: (*info).caps,
                mode: (*info).mode,
                prefix: endpoint.msg_prefix_size,
                orders: sends.msg_order & receives.msg_order,
                registration: (*(*info).domain_attr).mr_mode,
                inject: sends.inject_size,
                longest: endpoint.max_msg_size,
                read_behind_write: endpoint.max_order_raw_size,
                write_behind_write: endpoint.max_order_waw_size,
            }
        }
    }

    pub(super) fn keeps(&self, order: u64) -> bool {
        self.orders & order != 0
    }

    /// Returns true if memory is registered in a mode.
    pub(super) fn registers(&self, mode: i32) -> bool {
        self.registration & mode != 0
    }
}

impl Functions {
    /// The first offer of a provider that suits, as an entry of its own.
    pub(super) fn find(
        &self,
        provider: &str,
        domain: Option<&str>,
        suits: impl Fn(&str, &Offer) -> Result<(), String>,
    ) -> Result<(NonNull<fi_info>, Offer), String> {
        let name = CString::new(provider).map_err(|_| "a provider's name with a zero in it")?;
        // SAFETY: hints that the library makes, fills with defaults and frees; it frees the name too, so that is its C library's.
        let found = unsafe {
            let hints = NonNull::new((self.fi_dupinfo)(ptr::null())).ok_or("fi_allocinfo: no memory")?.as_ptr();
            (*hints).caps = FI_MSG | FI_RMA;
            (*hints).mode = FI_CONTEXT | FI_CONTEXT2;
            (*(*hints).ep_attr).r#type = FI_EP_RDM;
            let attributes = &mut *(*hints).domain_attr;
            attributes.threading = FI_THREAD_DOMAIN;
            attributes.resource_mgmt = FI_RM_ENABLED;
            attributes.av_type = FI_AV_TABLE;
            attributes.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
            (*(*hints).fabric_attr).prov_name = libc::strdup(name.as_ptr());
            let (mut found, mut code) = (ptr::null_mut(), 0);
            // Some keep the order of writes only if they are asked to, and others cannot.
            for orders in [FI_ORDER_SAS | FI_ORDER_WAW, FI_ORDER_SAS] {
                ((*(*hints).tx_attr).msg_order, (*(*hints).rx_attr).msg_order) = (orders, orders);
                code = with_own_signals(|| (self.fi_getinfo)(API, ptr::null(), ptr::null(), 0, hints, &raw mut found));
                if code == 0 {
                    break;
                }
            }
            (self.fi_freeinfo)(hints);
            self.check("fi_getinfo", code).map(|()| found)
        };
        let first = found?;
        let (mut next, mut chosen, mut refused) = (first, None, format!("it has no domain {}", domain.unwrap_or("at all")));
        while let Some(info) = NonNull::new(next) {
            // SAFETY: an entry of the library's list, whose attributes are all there; the copy is independent of the list.
            unsafe {
                next = (*info.as_ptr()).next;
                let attributes = (*info.as_ptr()).domain_attr;
                if domain.is_some_and(|domain| text((*attributes).name) != domain) {
                    continue;
                }
                let offer = Offer::of(info.as_ptr());
                let name = text((*(*info.as_ptr()).fabric_attr).prov_name);
                match suits(&name, &offer) {
                    Ok(()) => {
                        chosen = NonNull::new((self.fi_dupinfo)(info.as_ptr())).map(|info| (info, offer));
                        break;
                    }
                    Err(why) => refused = why,
                }
            }
        }
        // SAFETY: a list of the library, which nobody uses any more.
        unsafe { (self.fi_freeinfo)(first) };
        chosen.ok_or(refused)
    }

    pub(super) fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        if code == 0 { Ok(()) } else { Err(self.refused(call, -code)) }
    }

    pub(super) fn refused(&self, call: &str, code: c_int) -> String {
        format!("{call}: {}", self.text(code))
    }

    pub(super) fn text(&self, code: c_int) -> String {
        // SAFETY: a text of the library, which lasts.
        text(unsafe { (self.fi_strerror)(code) })
    }
}

/// A text that ends by zero, or none.
pub(super) fn text(start: *const c_char) -> String {
    // SAFETY: texts of the library.
    if start.is_null() { String::new() } else { unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned() }
}
