//! Recognises binary files, with advice for reading them otherwise.

/// The name of a format, and a command that shows its content.
type Kind = (&'static str, &'static str);

/// The format of a file with this start, if known. A file that begins with `%PDF` is never read as text, even
/// if it is text.
pub fn kind(head: &[u8]) -> Option<Kind> {
    let known = KINDS.iter().find(|(at, magic, _)| {
        let bytes = head.get(*at..);
        bytes.is_some_and(|bytes| bytes.starts_with(magic))
    });
    known.map(|(_, _, kind)| *kind)
}

pub const UNKNOWN: Kind = ("binary data", "file, xxd PATH | head or strings");

/// A signature: offset in the file, bytes, and the format.
const KINDS: &[(usize, &[u8], Kind)] = &[
    (0, b"%PDF-", ("a PDF document", "pdftotext PATH -")),
    (0, b"\x7fELF", ("an ELF program or library", "file, nm or objdump")),
    (0, b"\xcf\xfa\xed\xfe", ("a Mach-O program or library", "file, nm or otool")),
    (0, b"\xca\xfe\xba\xbe", ("a Java class or universal Mach-O file", "file or javap")),
    (0, b"\0asm", ("a WebAssembly module", "wasm2wat")),
    (0, b"PK\x03\x04", ("a ZIP archive (or a document in one)", "unzip -l PATH, unzip -p PATH NAME")),
    (0, b"PK\x05\x06", ("an empty ZIP archive", "unzip -l PATH")),
    (0, b"\x1f\x8b", ("gzip data", "zcat PATH | head, tar tzf PATH")),
    (0, b"BZh", ("bzip2 data", "bzcat PATH | head, tar tjf PATH")),
    (0, b"\xfd7zXZ\0", ("xz data", "xzcat PATH | head, tar tJf PATH")),
    (0, b"\x28\xb5\x2f\xfd", ("zstd data", "zstdcat PATH | head")),
    (0, b"7z\xbc\xaf\x27\x1c", ("a 7z archive", "7z l PATH")),
    (257, b"ustar", ("a tar archive", "tar tf PATH")),
    (0, b"!<arch>\n", ("a static library or package", "ar t PATH")),
    (0, b"SQLite format 3\0", ("an SQLite database", "sqlite3 PATH .schema")),
    (0, b"\x89PNG\r\n\x1a\n", ("an animated or damaged PNG image", "file, or convert it to a plain PNG")),
    (0, b"\xff\xd8\xff\xf7", ("a lossless JPEG image", "file, or convert it to PNG")),
    (0, b"II*\0", ("a TIFF image", "file, or convert it to PNG")),
    (0, b"MM\0*", ("a TIFF image", "file, or convert it to PNG")),
    (0, b"\0\0\x01\0", ("an icon", "file, or convert it to PNG")),
    (4, b"ftypheic", ("an HEIC image", "file, or convert it to PNG")),
    (4, b"ftypavif", ("an AVIF image", "file, or convert it to PNG")),
    (4, b"ftyp", ("a video", "ffprobe PATH")),
    (0, b"\x1a\x45\xdf\xa3", ("a video", "ffprobe PATH")),
    (0, b"ID3", ("audio", "ffprobe PATH")),
    (0, b"OggS", ("audio or video", "ffprobe PATH")),
    (0, b"fLaC", ("audio", "ffprobe PATH")),
    (0, b"RIFF", ("audio or video", "ffprobe PATH")),
    (0, b"wOFF", ("a font", "file")),
    (0, b"wOF2", ("a font", "file")),
    (0, b"\0\x01\0\0\0", ("a font", "file")),
];
