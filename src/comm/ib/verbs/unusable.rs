//! Why there is no adapter to use.

use std::fmt;

use super::super::device::DeviceError;

/// A reason why no adapter can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum Unusable {
    #[error(
        "InfiniBand needs {library}, which cannot be loaded ({cause}); install it (Debian: libibverbs1 and ibverbs-providers)"
    )]
    Library { library: &'static str, cause: String },
    #[error(
        "no adapter for InfiniBand or RoCE in this machine: the kernel lists none in {sysfs}; load the adapter's driver, or make a \
         software device (rdma link add rxe0 type rxe netdev eth0)"
    )]
    NoDevice { sysfs: &'static str },
    #[error(
        "libibverbs has no driver for what the kernel lists in {sysfs}: {}; install it (Debian: ibverbs-providers)",
        Names(kernel)
    )]
    NoDriver { sysfs: &'static str, kernel: Vec<String> },
    #[error("GA_IB_DEVICE={asked}: not the name of an adapter, or a name and a port as in mlx5_0:1")]
    DeviceName { asked: String },
    #[error("GA_IB_DEVICE={asked}: no such adapter; there is {}", Names(there))]
    NoSuchDevice { asked: String, there: Vec<String> },
    #[error("GA_IB_DEVICE={device}:{port}: {device} has the ports 1 to {last}")]
    NoSuchPort { device: String, port: u8, last: u8 },
    #[error(
        "no port is active: {}; connect one, wait for it (ibv_devinfo shows its state), or choose another by GA_IB_DEVICE",
        Names(looked)
    )]
    NoActivePort { looked: Vec<String> },
    #[error("GA_IB_GID={asked}: not the number of an entry of the port's table of GIDs, 0 to 255")]
    GidNumber { asked: String },
    #[error(
        "GA_IB_GID={index}: this entry of the GID table of {port} is empty; there is {}; choose one of them, or none by leaving the \
         variable unset",
        Names(there)
    )]
    GidHole { port: String, index: u8, there: Vec<String> },
    #[error(
        "{port} has no GID of RoCE v2; there is {}; give its network interface an address, or choose an entry by GA_IB_GID on all machines",
        Names(there)
    )]
    NoGid { port: String, there: Vec<String> },
    #[error("GA_IB_PKEY={asked}: not a partition key, as 0x8001")]
    PartitionKey { asked: String },
    #[error(
        "GA_IB_PKEY={asked:#06x}: {port} is in no such partition; there is {}; choose one of them, or none by leaving the variable unset",
        Names(there)
    )]
    NoPartition { port: String, asked: u16, there: Vec<String> },
    #[error("GA_IB_SL={asked}: not a service level, 0 to 15")]
    Level { asked: String },
    #[error("GA_IB_TC={asked}: not a traffic class, 0 to 255")]
    Class { asked: String },
    #[error("{name}: {call}: {}; the user needs to read and write /dev/infiniband/uverbs*", std::io::Error::from_raw_os_error(*code))]
    Open { name: String, call: &'static str, code: i32 },
    #[error("{name}: {call}: no memory can be pinned for the adapter's queues; {allowed}")]
    Queues { name: String, call: &'static str, allowed: String },
    #[error("{name}: {error}")]
    Device { name: String, error: DeviceError },
}

/// Names in a sentence.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => write!(f, "none"),
            names => write!(f, "{}", names.join(", ")),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_was_looked_for() {
        let texts = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let line = Unusable::NoActivePort { looked: texts(&["mlx5_0:1 is down", "mlx5_1:1 is initializing"]) }.to_string();
        assert!(line.starts_with("no port is active: mlx5_0:1 is down, mlx5_1:1 is initializing; "), "{line}");
        let line = Unusable::NoGid { port: "rxe0:1".into(), there: Vec::new() }.to_string();
        assert!(line.contains("rxe0:1") && line.contains("there is none"), "{line}");
        assert!(!line.contains('\n'));
    }
}
