//! Compresses the texts that are part of the program: `packed!` of `src/base/packed.rs` takes them in. Cargo runs
//! this before it builds the program.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::{self, Write};
use std::path::Path;
use std::{env, fs};

/// Files, and folders whose files are taken.
const TEXTS: &[&str] = &["CHANGELOG.md", "src/docs", "src/extension/host"];

fn main() -> io::Result<()> {
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    for text in TEXTS {
        println!("cargo::rerun-if-changed={text}");
        compress(Path::new(text), Path::new(&out))?;
    }
    Ok(())
}

fn compress(path: &Path, out: &Path) -> io::Result<()> {
    if path.is_dir() {
        return fs::read_dir(path)?.try_for_each(|entry| compress(&entry?.path(), out));
    }
    let to = out.join(path);
    fs::create_dir_all(to.parent().unwrap_or(out))?;
    let mut encoder = DeflateEncoder::new(fs::File::create(to)?, Compression::best());
    encoder.write_all(&fs::read(path)?)?;
    encoder.finish().map(drop)
}
