//! How a process ended, in words. Only SIGKILL "killed" it: other signals have other reasons.

/// What a signal did to a rank, to stand behind "rank 1".
pub(crate) fn ended_by(signal: i32) -> String {
    let name = match signal {
        libc::SIGKILL => return "was killed by SIGKILL (kill -9, or the OOM killer)".into(),
        libc::SIGTERM => "SIGTERM (kill, its launcher, or a batch system)",
        libc::SIGINT => "SIGINT",
        libc::SIGHUP => "SIGHUP",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGXCPU => "SIGXCPU (CPU time limit)",
        _ => return format!("was ended by signal {signal}"),
    };
    format!("was ended by {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn killed_is_who_was_killed() {
        assert!(ended_by(libc::SIGKILL).starts_with("was killed by SIGKILL"));
        for (signal, name) in [(libc::SIGTERM, "SIGTERM"), (libc::SIGSEGV, "SIGSEGV"), (libc::SIGUSR1, "signal 10")] {
            let text = ended_by(signal);
            assert!(text.starts_with(&format!("was ended by {name}")) && !text.contains("kill -9"), "{text}");
        }
    }
}
