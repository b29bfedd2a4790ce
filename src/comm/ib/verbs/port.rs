//! The choice of a port and its adapter.

use std::ffi::c_int;

use super::{
    super::{
        device::{DeviceError, Result},
        ffi::*,
    },
    Unusable,
    gid::{self, Gid},
    library::{AdapterList, Object, check, zeroed},
    partition,
};

/// What the user has chosen. What is not chosen is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct PortChoice {
    device: Option<String>,
    port: Option<u8>,
    gid: Option<u8>,
    partition: Option<u16>,
    level: u8,
    class: u8,
}

impl PortChoice {
    /// From the texts of `GA_IB_DEVICE` (`mlx5_0` or `mlx5_0:1`) and `GA_IB_GID` (`3`).
    ///
    /// # Errors
    /// What is wrong with them.
    pub(in super::super) fn parse(device: Option<&str>, gid: Option<&str>) -> std::result::Result<Self, Unusable> {
        let mut choice = PortChoice::default();
        if let Some(asked) = device {
            let wrong = || Unusable::DeviceName { asked: asked.to_owned() };
            let (name, port) = match asked.split_once(':') {
                Some((name, port)) => (name, Some(port.parse().ok().filter(|&port: &u8| port > 0).ok_or_else(wrong)?)),
                None => (asked, None),
            };
            if name.is_empty() || name.contains(char::is_whitespace) {
                return Err(wrong());
            }
            (choice.device, choice.port) = (Some(name.to_owned()), port);
        }
        if let Some(asked) = gid {
            choice.gid = Some(asked.parse().map_err(|_| Unusable::GidNumber { asked: asked.to_owned() })?);
        }
        Ok(choice)
    }

    /// Adds how packets leave the port, from the texts of `GA_IB_PKEY` (`0x8001`), `GA_IB_SL` (`3`) and `GA_IB_TC` (`106`).
    ///
    /// # Errors
    /// What is wrong with them.
    pub(in super::super) fn along(self, [partition, level, class]: [Option<&str>; 3]) -> std::result::Result<Self, Unusable> {
        let key = |asked: &str| partition::parse(asked).ok_or_else(|| Unusable::PartitionKey { asked: asked.to_owned() });
        let number = |asked: Option<&str>, most: u8| match asked {
            None => Ok(0),
            Some(asked) => asked.parse().ok().filter(|&number| number <= most).ok_or_else(|| asked.to_owned()),
        };
        let level = number(level, HIGHEST_LEVEL).map_err(|asked| Unusable::Level { asked })?;
        let class = number(class, u8::MAX).map_err(|asked| Unusable::Class { asked })?;
        Ok(PortChoice { partition: partition.map(key).transpose()?, level, class, ..self })
    }
}

/// Service levels have four bits.
const HIGHEST_LEVEL: u8 = 15;

/// An active port.
#[derive(Clone, Debug)]
pub(super) struct VerbsPort {
    /// Of the adapter, as `mlx5_0`.
    pub(super) device: String,
    pub(super) number: u8,
    pub(super) gid: Gid,
    /// Zero over Ethernet.
    pub(super) lid: u16,
    /// As verbs writes it.
    pub(super) mtu: u8,
    pub(super) longest_message: usize,
    /// Packets are RoCE's: then only a GID leads anywhere.
    pub(super) ethernet: bool,
    /// Packets need the global part of the route, also in the subnet.
    pub(super) global: bool,
    /// An entry of its table of partition keys; the service level and the traffic class of packets.
    pub(super) partition: u16,
    pub(super) level: u8,
    pub(super) class: u8,
}

impl VerbsPort {
    /// As users name it.
    pub(super) fn name(&self) -> String {
        format!("{}:{}", self.device, self.number)
    }

    /// Bytes of the longest packet's data.
    pub(super) fn packet(&self) -> usize {
        128 << self.mtu
    }
}

/// Opens the adapter of the port to use: the chosen one; else the first that is active, InfiniBand before Ethernet. What cannot be opened
/// although nobody has chosen it is passed over: a container may hold only some of the machine's adapters.
pub(super) fn open(
    functions: &Functions,
    choice: &PortChoice,
) -> std::result::Result<(Object<ibv_context>, VerbsPort), Unusable> {
    let adapters = AdapterList::list(functions)?;
    let names = adapters.names();
    let wanted = |name: &String| choice.device.as_ref().is_none_or(|device| device == name);
    let (mut looked, mut unusable, mut best) = (Looked::default(), None, None);
    for (at, name) in names.iter().enumerate().filter(|(_, name)| wanted(name)) {
        match best_of(functions, &adapters, at, name, choice, &mut looked) {
            Ok(found) => {
                let is_better = |(_, port): &(_, VerbsPort)| {
                    best.as_ref().is_none_or(|(_, best): &(_, VerbsPort)| best.ethernet && !port.ethernet)
                };
                best = found.filter(is_better).or(best);
            }
            Err(error) if choice.device.is_some() => return Err(error),
            Err(error) => unusable = unusable.or(Some(error)),
        }
    }
    if let Some(asked) = choice.device.as_ref().filter(|device| !names.contains(device)) {
        return Err(Unusable::NoSuchDevice { asked: asked.clone(), there: names });
    }
    let Looked { inactive, refused } = looked;
    best.ok_or_else(|| refused.or(unusable).unwrap_or(Unusable::NoActivePort { looked: inactive }))
}

/// What was found besides ports that can be used: ports that are not active, and why the first active one cannot be used.
#[derive(Default)]
struct Looked {
    inactive: Vec<String>,
    refused: Option<Unusable>,
}

/// Opens an adapter, and finds the best of its ports.
fn best_of(
    functions: &Functions,
    adapters: &AdapterList,
    at: usize,
    name: &str,
    choice: &PortChoice,
    looked: &mut Looked,
) -> std::result::Result<Option<(Object<ibv_context>, VerbsPort)>, Unusable> {
    let failed = |error| Unusable::Device { name: name.to_owned(), error };
    let context = match adapters.open(at) {
        Err(DeviceError::System { call, code }) => return Err(Unusable::Open { name: name.to_owned(), call, code }),
        opened => opened.map_err(failed)?,
    };
    let last = attributes(functions, &context).map_err(failed)?.phys_port_cnt;
    if let Some(port) = choice.port.filter(|&port| port > last) {
        return Err(Unusable::NoSuchPort { device: name.to_owned(), port, last });
    }
    let mut found = None;
    for number in (1..=last).filter(|&number| choice.port.is_none_or(|port| port == number)) {
        let port = query(functions, &context, number).map_err(failed)?;
        if port.state != IBV_PORT_ACTIVE {
            looked.inactive.push(format!("{name}:{number} is {}", state(port.state)));
            continue;
        }
        match usable(functions, &context, name, number, &port, choice) {
            Ok(port) if found.as_ref().is_none_or(|found: &VerbsPort| found.ethernet && !port.ethernet) => found = Some(port),
            Ok(_) => {}
            Err(error) => looked.refused = looked.refused.take().or(Some(error)),
        }
    }
    Ok(found.map(|port| (context, port)))
}

/// What an active port offers.
fn usable(
    functions: &Functions,
    context: &Object<ibv_context>,
    device: &str,
    number: u8,
    port: &ibv_port_attr,
    choice: &PortChoice,
) -> std::result::Result<VerbsPort, Unusable> {
    let ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    let length = u32::try_from(port.gid_tbl_len).unwrap_or(0).min(gid::NAMEABLE);
    let entry = |index: u8| {
        let raw = query_gid(functions, context, number, index)?;
        Some(Gid { index, raw, kind: gid::kind(device, number, index) })
    };
    let table: Vec<Gid> = (0..length).filter_map(|index| entry(index as u8)).collect();
    let name = format!("{device}:{number}");
    let gid = gid::choose(&name, &table, ethernet, choice.gid)?;
    Ok(VerbsPort {
        device: device.to_owned(),
        number,
        gid,
        lid: port.lid,
        mtu: port.active_mtu.clamp(1, 5) as u8,
        longest_message: port.max_msg_sz as usize,
        ethernet,
        global: port.flags & IBV_QPF_GRH_REQUIRED != 0,
        partition: partition::choose(&name, &partition::table(device, number, port.pkey_tbl_len), choice.partition)?,
        level: choice.level,
        class: choice.class,
    })
}

fn state(state: c_int) -> String {
    match state {
        IBV_PORT_DOWN => "down".to_owned(),
        IBV_PORT_INIT => "up but not configured: no subnet manager answers".to_owned(),
        IBV_PORT_ARMED => "about to become active".to_owned(),
        other => format!("in state {other}"),
    }
}

pub(super) fn attributes(functions: &Functions, context: &Object<ibv_context>) -> Result<ibv_device_attr> {
    // SAFETY: numbers and an array of them.
    let mut attributes = unsafe { zeroed() };
    // SAFETY: an open device; the place is written during the call.
    let code = unsafe { (functions.ibv_query_device)(context.pointer(), &raw mut attributes) };
    check("ibv_query_device", code).map(|()| attributes)
}

fn query(functions: &Functions, context: &Object<ibv_context>, port: u8) -> Result<ibv_port_attr> {
    // SAFETY: numbers.
    let mut attributes = unsafe { zeroed() };
    // SAFETY: an open device; of the place, which is larger, all but the last field is written.
    let code = unsafe { (functions.ibv_query_port)(context.pointer(), port, &raw mut attributes) };
    check("ibv_query_port", code).map(|()| attributes)
}

/// An entry of the table, unless it is empty. Some kernels refuse to read an empty one.
fn query_gid(functions: &Functions, context: &Object<ibv_context>, port: u8, index: u8) -> Option<[u8; 16]> {
    let mut gid = ibv_gid { raw: [0; 16] };
    // SAFETY: an open device; the place is written during the call.
    let code = unsafe { (functions.ibv_query_gid)(context.pointer(), port, c_int::from(index), &raw mut gid) };
    (code == 0 && !gid::is_hole(gid.raw)).then_some(gid.raw)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_name_and_perhaps_a_port() {
        let parse = |device, gid| PortChoice::parse(device, gid);
        assert_eq!(parse(None, None), Ok(PortChoice::default()));
        let named = |port, gid| PortChoice { device: Some("mlx5_0".into()), port, gid, ..PortChoice::default() };
        assert_eq!(parse(Some("mlx5_0"), Some("3")), Ok(named(None, Some(3))));
        assert_eq!(parse(Some("mlx5_0:2"), None), Ok(named(Some(2), None)));
        for wrong in ["", ":1", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x", "a b"] {
            let error = parse(Some(wrong), None).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("GA_IB_DEVICE={wrong}: ")), "{error}");
        }
        for wrong in ["", "-1", "256", "x"] {
            let error = parse(None, Some(wrong)).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("GA_IB_GID={wrong}: ")), "{error}");
        }
    }

    #[test]
    fn how_packets_leave_a_port_is_chosen_with_it() {
        let along = |texts| PortChoice::default().along(texts);
        assert_eq!(along([None; 3]), Ok(PortChoice::default()));
        let chosen = PortChoice { partition: Some(0x8001), level: 15, class: 106, ..PortChoice::default() };
        assert_eq!(along([Some("0x8001"), Some("15"), Some("106")]), Ok(chosen));
        for (at, name, wrong) in [(0, "PKEY", "8001"), (1, "SL", "16"), (1, "SL", "-1"), (2, "TC", "256"), (2, "TC", "")] {
            let error = along(std::array::from_fn(|k| (k == at).then_some(wrong))).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("GA_IB_{name}={wrong}: ")), "{error}");
        }
    }
}
