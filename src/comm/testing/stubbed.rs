//! Shims with stubs in the place of the libraries that they call: the stubs record the calls (`tests/runner/stubs`).

use std::{
    ffi::{CStr, CString, c_char},
    fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use libloading::os::unix::{Library, Symbol};

use super::header::skipped;
use crate::comm::rma::shim::Shim;

/// A shim with a stub.
pub(in crate::comm) struct Stubbed {
    path: PathBuf,
    library: Library,
}

impl Stubbed {
    /// Compiles a shim by its own command, but for what the machine has. The library is of one test alone. None if there is no compiler, which is said.
    ///
    /// # Panics
    /// If it is not compiled without a warning.
    pub(in crate::comm) fn new(shim: &Shim, stub: &str, test: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = std::env::temp_dir().join(format!("global-arrays-{}-{}-{test}.so", process::id(), shim.option));
        let words = shim.command.split(' ').filter(|word| !word.starts_with("-l"));
        let words = words.map(|word| if word.ends_with(".so") { path.as_os_str() } else { word.as_ref() });
        let words: Vec<_> = words.collect();
        let mut compiler = Command::new(words[0]);
        compiler.current_dir(root).args(&words[1..]).args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
            "tests/runner/stubs",
        ]);
        let output = match compiler.arg(format!("tests/runner/stubs/{stub}")).output() {
            Ok(output) => output,
            Err(error) => {
                skipped(test, &format!("no C compiler cc ({error})"));
                return None;
            }
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: a library of ours, which does nothing when it is loaded.
        let library = unsafe { Library::new(&path) }.expect("a library that was just made");
        Some(Stubbed { path, library })
    }

    pub(in crate::comm) fn path(&self) -> &str {
        self.path.to_str().expect("a path of ours")
    }

    /// A function of the library.
    ///
    /// # Safety
    /// It is of this type.
    pub(in crate::comm) unsafe fn function<T>(&self, name: &str) -> Symbol<T> {
        // SAFETY: the caller's promise.
        unsafe { self.library.get(name.as_bytes()) }.expect("a function of the library")
    }

    /// The next call that can answer so does.
    pub(in crate::comm) fn tell(&self, answer: &str) {
        let answer = CString::new(answer).expect("a name");
        // SAFETY: a function of the stub, and a text that ends by zero.
        unsafe { self.function::<unsafe extern "C" fn(*const c_char)>("stub_tell")(answer.as_ptr()) };
    }

    /// The calls since it was asked last.
    pub(in crate::comm) fn calls(&self) -> Vec<String> {
        let mut text = [0; 8192];
        // SAFETY: a function of the stub, and room for so many bytes.
        unsafe { self.function::<unsafe extern "C" fn(*mut c_char, usize)>("stub_take")(text.as_mut_ptr(), text.len()) };
        // SAFETY: it ends by zero.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        text.to_str().expect("names and numbers").lines().map(str::to_owned).collect()
    }
}

impl Drop for Stubbed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
