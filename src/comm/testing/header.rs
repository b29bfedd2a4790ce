//! Comparing declarations with a C header, as this machine's C compiler reads it: a C program prints the size of each structure, the offset and
//! size of each field, and each constant.

use std::{
    fs,
    io::{self, Write},
    process::{Command, Stdio},
};

/// An expression of C, and what it must be.
pub(crate) type Known = (String, i64);

pub(crate) const fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

/// Offset and size of a field, which may lie in others.
macro_rules! field {
    ($known:ident, $c:expr, $type:ident, $($field:ident).+) => {{
        let whole = std::mem::MaybeUninit::<$type>::uninit();
        // SAFETY: a field of a place that is large enough; nothing is read.
        let field = unsafe { &raw const (*whole.as_ptr()).$($field).+ };
        let (c, name) = ($c, [$(stringify!($field)),+].join(".").replace("r#", ""));
        $known.push((format!("offsetof({c}, {name})"), (field.addr() - whole.as_ptr().addr()) as i64));
        $known.push((format!("sizeof((({c} *)0)->{name})"), $crate::comm::testing::header::size_behind(field) as i64));
    }};
}

/// Structures with all their fields, and with their sizes unless they are declared in part.
macro_rules! structures {
    ($known:ident: $($part:ident $type:ident { $($field:ident)* })*) => {
        $(
            // Does not build if a field is missing.
            let _ = |whole: &$type| { let $type { $($field: _),* } = whole; };
            $($crate::comm::testing::header::field!($known, concat!("struct ", stringify!($type)), $type, $field);)*
            if stringify!($part) == "whole" {
                $known.push((concat!("sizeof(struct ", stringify!($type), ")").to_owned(), size_of::<$type>() as i64));
                $known.push((concat!("_Alignof(struct ", stringify!($type), ")").to_owned(), align_of::<$type>() as i64));
            }
        )*
    };
}

macro_rules! constants {
    ($known:ident: $($name:ident)*) => { $($known.push((stringify!($name).to_owned(), i64::from($name)));)* };
}

pub(crate) use {constants, field, structures};

fn compiler(arguments: &[&str], stdin: &str) -> io::Result<(bool, String)> {
    let mut cc = Command::new("cc").args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    cc.stdin.take().expect("piped").write_all(stdin.as_bytes())?;
    let outcome = cc.wait_with_output()?;
    Ok((outcome.status.success(), String::from_utf8_lossy(&outcome.stderr).into_owned()))
}

/// Why there is nothing to compare with.
pub(crate) fn missing(header: &str, package: &str) -> Option<String> {
    match compiler(&["-E", "-x", "c", "-"], &format!("#include <{header}>\n")) {
        Err(error) => Some(format!("no C compiler cc ({error})")),
        Ok((false, _)) => Some(format!("no header {header} (Debian: {package})")),
        Ok((true, _)) => None,
    }
}

/// Tells the reader of the suites; libtest shows nothing else of a test that passes.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(io::stdout(), "\nskipped: {test}: {why}");
}

/// A Rust type, in C; one that is not known is a structure.
pub(crate) fn in_c(rust: &str) -> String {
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(to));
    }
    if let Some(to) = rust.strip_prefix("*const ") {
        return format!("const {} *", in_c(to));
    }
    let c = match rust {
        "c_int" => "int",
        "c_uint" => "unsigned int",
        "c_char" => "char",
        "c_void" => "void",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        structure => return format!("struct {structure}"),
    };
    c.to_owned()
}

/// Compares what is known with what a C program prints that includes the header.
///
/// # Panics
/// If anything differs.
pub(crate) fn compare(header: &str, more: &str, known: &[Known]) {
    let lines: String = known.iter().map(|(c, _)| format!("    printf(\"%lld\\n\", (long long)({c}));\n")).collect();
    let program = format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <{header}>\n{more}\n\
         int main(void) {{\n{lines}    return 0;\n}}\n"
    );
    let folder = std::env::temp_dir().join(format!("global-arrays-{}-{}", header.replace('/', "-"), std::process::id()));
    fs::create_dir(&folder).expect("a folder for the program");
    let path = folder.join("layout");
    let built = compiler(&["-x", "c", "-o", path.to_str().expect("text"), "-"], &program);
    let printed = Command::new(&path).output();
    let _ = fs::remove_dir_all(&folder);
    let (success, said) = built.expect("cc");
    assert!(success, "the header does not know all of ffi:\n{said}");
    let printed = String::from_utf8(printed.expect("the program").stdout).expect("text");
    let values: Vec<i64> = printed.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(values.len(), known.len());
    let wrong: Vec<String> = known
        .iter()
        .zip(values)
        .filter(|((_, rust), c)| rust != c)
        .map(|((expression, rust), c)| format!("{expression}: {c} in C, {rust} in ffi"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), known.len(), wrong.join("\n"));
}

/// The names in an expression.
pub(crate) fn names(expression: &str) -> Vec<String> {
    expression.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
}
