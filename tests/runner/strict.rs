//! The networks `ofi:strict`: a libfabric as strict as its documentation allows (`strict.c`), which the loader finds before the real one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::OnceLock,
};

/// In the names of its cases.
pub(crate) const NETWORK: &str = "ofi:strict";

/// Where the loader looks first.
const PATH: &str = "LD_LIBRARY_PATH";

/// Makes a case find it, if it can be built.
pub(super) fn prepare(command: &mut Command) {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    if let Some(folder) = FOLDER.get_or_init(|| build().inspect_err(|why| println!("{NETWORK}: {why}")).ok()) {
        command.env(PATH, folder);
    }
}

/// Returns true if this case was prepared.
pub(super) fn is_there() -> bool {
    env::var_os(PATH).is_some_and(|path| path == folder())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("strict")
}

/// Builds it anew: a second takes it all.
fn build() -> Result<PathBuf, String> {
    let (source, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("runner"), folder());
    // Another suite may use the last one.
    let made = folder.join(format!("made-{}", process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut script = std::ffi::OsString::from("-Wl,--version-script=");
    script.push(source.join("strict.map"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(&made).arg(source.join("strict.c"));
    let output = compiler.arg(script).arg("-ldl").output().map_err(|error| format!("cc: {error}"))?;
    if !output.status.success() {
        return Err(format!("cannot be built (cc, libfabric-dev): {}", String::from_utf8_lossy(&output.stderr)));
    }
    fs::rename(made, folder.join("libfabric.so.1")).map_err(|error| error.to_string())?;
    Ok(folder)
}
