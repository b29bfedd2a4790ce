//! What the machine boots: Debian's kernel with its modules, and a file system in memory with tools and libraries of this machine.
//!
//! The kernel is downloaded and unpacked, not installed, once for each of its versions. It must be the generic one: that of clouds has
//! no soft-RoCE. Its compressed image is unpacked here, because the emulated processor would take seconds for it.

use crate::child::{self, Outcome};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// To be raised when what is built below changes.
const RECIPE: u32 = 3;

/// The package that depends on the present kernel.
const KERNEL: &str = "linux-image-amd64";

const LIMIT: Duration = Duration::from_secs(600);

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Programs of this machine. What they lack, `busybox` has.
const TOOLS: [&str; 5] = ["/bin/dash", "/sbin/ip", "/sbin/tc", "/usr/bin/rdma", "/bin/busybox"];

/// Libraries that are loaded by name.
const LOADED: [&str; 3] = ["libibverbs.so.1", "libgcc_s.so.1", "libibverbs/librxe-rdmav34.so"];

/// What the kernel loads, in this order, each behind what it depends on. Soft-RoCE asks for `crc32` by its algorithm, so nothing else
/// would bring it.
const MODULES: [&str; 5] = ["crc32_generic", "rdma_rxe", "ib_uverbs", "veth", "sch_netem"];

/// Parts of the kernel's package.
const PARTS: [&str; 9] = [
    "./boot/vmlinuz-*",
    "./lib/modules/*/modules.*",
    "./lib/modules/*/kernel/drivers/infiniband/core/*",
    "./lib/modules/*/kernel/drivers/infiniband/sw/*",
    "./lib/modules/*/kernel/drivers/net/veth*",
    "./lib/modules/*/kernel/net/*",
    "./lib/modules/*/kernel/lib/*",
    "./lib/modules/*/kernel/crypto/*",
    "./lib/modules/*/kernel/arch/*",
];

const INIT: &str = include_str!("init.sh");

/// Files to boot from.
#[derive(Debug)]
pub struct Image {
    pub kernel: PathBuf,
    /// An archive, to which others may be appended.
    pub files: PathBuf,
}

/// Why there is no image.
#[derive(Debug)]
pub enum Obstacle {
    /// The archive of packages cannot be reached.
    OutOfReach(anyhow::Error),
    Broken(anyhow::Error),
}

impl Image {
    /// The image in a folder of images; made if it is not there.
    pub fn get(images: &Path) -> Result<Self, Obstacle> {
        let package = present_kernel().map_err(Obstacle::OutOfReach)?;
        let folder = images.join(format!("{package}-{RECIPE}"));
        let image = Image { kernel: folder.join("vmlinux"), files: folder.join("files.cpio") };
        if !folder.exists() {
            let making = images.join(format!("making-{}", std::process::id()));
            let made = download(&package, &making)
                .map_err(Obstacle::OutOfReach)
                .and_then(|()| make(&package, &making).map_err(Obstacle::Broken))
                .and_then(|()| fs::rename(&making, &folder).map_err(|error| Obstacle::Broken(error.into())));
            let _ = fs::remove_dir_all(&making);
            made?;
        }
        Ok(image)
    }
}

fn download(package: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).context("making a folder for the virtual machine")?;
    run("apt-get", &["-o", "APT::Sandbox::User=root", "download", "-q", package], folder).map(drop)
}

/// The name of the package of the kernel itself.
fn present_kernel() -> Result<String> {
    let answer = run("apt-cache", &["depends", KERNEL], Path::new("/"))?;
    let depends = answer.stdout.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let kernel = depends.map(str::to_owned).find(|name| name.starts_with("linux-image-"));
    kernel.with_context(|| format!("apt-cache knows no package {KERNEL}: apt-get update"))
}

fn make(package: &str, folder: &Path) -> Result<()> {
    let unpacked = folder.join("unpacked");
    fs::create_dir(&unpacked)?;
    let parts = PARTS.map(|part| format!("'{part}'")).join(" ");
    shell(&format!("dpkg-deb --fsys-tarfile {package}_*.deb | tar -x -C unpacked --wildcards {parts}"), folder)?;
    let release = only_entry(&unpacked.join("lib/modules"))?;
    let root = folder.join("root");
    lay_out(&root)?;
    modules(&unpacked, &release, &root.join("modules"))?;
    archive(&root, &folder.join("files.cpio"))?;
    uncompress(&unpacked.join(format!("boot/vmlinuz-{release}")), folder)?;
    fs::remove_dir_all(&unpacked)?;
    fs::remove_dir_all(&root)?;
    shell("rm -f *.deb", folder)
}

/// The name of the one entry of a folder.
fn only_entry(folder: &Path) -> Result<String> {
    let first = fs::read_dir(folder)?.next().with_context(|| format!("{} is empty", folder.display()))??;
    Ok(first.file_name().to_string_lossy().into_owned())
}

/// Folders, tools and their libraries.
fn lay_out(root: &Path) -> Result<()> {
    for folder in ["usr/bin", "usr/sbin", "usr/lib64", "etc", "proc", "sys", "dev", "tmp", "modules", "work", LIBRARIES] {
        fs::create_dir_all(root.join(folder))?;
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{name}"), root.join(name))?;
    }
    let mut files: BTreeSet<PathBuf> = TOOLS.iter().map(PathBuf::from).collect();
    files.extend(LOADED.iter().map(|name| Path::new("/").join(LIBRARIES).join(name)));
    for file in &files {
        copy(file, root)?;
    }
    with_libraries(files.iter().map(PathBuf::as_path), root)?;
    // Its own shell would prefer its own smaller `ip`.
    symlink("dash", root.join("usr/bin/sh"))?;
    let applets = run("/bin/busybox", &["--list"], Path::new("/"))?.stdout;
    for applet in applets.lines() {
        if !root.join("usr/bin").join(applet).exists() && !root.join("usr/sbin").join(applet).exists() {
            symlink("busybox", root.join("usr/bin").join(applet))?;
        }
    }
    fs::create_dir_all(root.join("etc/libibverbs.d"))?;
    fs::write(root.join("etc/libibverbs.d/rxe.driver"), "driver rxe\n")?;
    fs::write(root.join("etc/passwd"), "root:x:0:0::/tmp:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\nuser:x:1000:\n")?;
    fs::write(root.join("init"), INIT)?;
    shell("chmod 755 init", root)
}

/// Copies a file of this machine to the same place.
fn copy(file: &Path, root: &Path) -> Result<()> {
    let to = root.join(file.strip_prefix("/").context("a path from the root")?);
    if !to.exists() {
        let folder = to.parent().context("a file in a folder")?;
        fs::create_dir_all(folder)?;
        fs::copy(file, &to).with_context(|| format!("copying {}", file.display()))?;
    }
    Ok(())
}

/// Copies the shared libraries of programs and libraries.
pub fn with_libraries<'a>(files: impl Iterator<Item = &'a Path>, root: &Path) -> Result<()> {
    let mut libraries = BTreeSet::new();
    for file in files {
        // A program without libraries is an error to `ldd`.
        let list = child::run(Command::new("ldd").arg(file), LIMIT)?.stdout;
        libraries.extend(list.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
    }
    libraries.iter().try_for_each(|library| copy(library, root))
}

/// Copies modules, and lists them so that each follows what it depends on.
fn modules(unpacked: &Path, release: &str, to: &Path) -> Result<()> {
    let base = unpacked.to_string_lossy();
    run("depmod", &["-b", &base, release], unpacked)?;
    let mut order: Vec<String> = Vec::new();
    for module in MODULES {
        // What is built into the kernel is no file.
        let needed = run("modprobe", &["-d", &base, "-S", release, "--show-depends", module], unpacked)?.stdout;
        for path in needed.lines().filter_map(|line| line.strip_prefix("insmod ")).map(str::trim) {
            let name = Path::new(path).file_name().context("a module")?.to_string_lossy().into_owned();
            if !order.contains(&name) {
                fs::copy(path, to.join(&name))?;
                order.push(name);
            }
        }
    }
    Ok(fs::write(to.join("order"), order.join("\n") + "\n")?)
}

/// All of a folder as an archive that the kernel unpacks.
pub fn archive(folder: &Path, to: &Path) -> Result<()> {
    let to = to.to_string_lossy();
    shell(&format!("find . -mindepth 1 | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0 > '{to}'"), folder)
}

/// Takes the kernel out of its image.
fn uncompress(image: &Path, folder: &Path) -> Result<()> {
    const XZ: &[u8] = b"\xfd7zXZ\0";
    let bytes = fs::read(image)?;
    let start = bytes.windows(XZ.len()).position(|window| window == XZ).context("the kernel's image is not compressed by xz")?;
    fs::write(folder.join("vmlinux.xz"), &bytes[start..])?;
    // What follows the compressed part is an error to `xz`.
    let _ = shell("xz -dc --single-stream vmlinux.xz > vmlinux", folder);
    fs::remove_file(folder.join("vmlinux.xz"))?;
    let kernel = fs::read(folder.join("vmlinux"))?;
    if kernel.starts_with(b"\x7fELF") { Ok(()) } else { bail!("no kernel in {}", image.display()) }
}

fn shell(script: &str, folder: &Path) -> Result<()> {
    run("bash", &["-c", &format!("set -e -o pipefail\n{script}")], folder).map(drop)
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<Outcome> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let outcome = child::run(&mut command, LIMIT)?;
    if !outcome.success() {
        bail!("{program} {}: {}: {}", arguments.join(" "), outcome.end, outcome.tail(1));
    }
    Ok(outcome)
}
