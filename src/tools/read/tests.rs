//! Tests of the `read` tool as a whole, the lines and notices against the reference.

use super::*;
use crate::agent::CancelToken;
use crate::llm::model::Model;
use crate::tools::testing::{TempDir, call, call_with, text};
use std::fs;
use std::os::unix::fs::symlink;

/// Content as pieces with their counts, offset, limit, and the reference's result.
type Row = (Vec<(String, usize)>, Option<f64>, Option<f64>, String, Option<Value>);

#[test]
fn lines_and_notices_are_those_of_the_reference() {
    let json = include_str!("../../../tests/data/tools/read.json");
    let rows: Vec<Row> = serde_json::from_str(json).unwrap();
    let dir = TempDir::create();
    let tool = tool(Arc::new(dir.workspace()));
    for (pieces, offset, limit, expected, details) in rows {
        let content: String = pieces.iter().map(|(piece, count)| piece.repeat(*count)).collect();
        dir.write("f", &content);
        let mut arguments = json!({"path": "f"});
        for (name, value) in [("offset", offset), ("limit", limit)] {
            if let Some(value) = value {
                arguments[name] = value.into();
            }
        }
        let result = call(tool.as_ref(), arguments.clone());
        assert_eq!(text(&result), expected, "{pieces:?} {arguments}");
        assert_eq!(result.ok().and_then(|output| output.details), details, "{pieces:?} {arguments}");
    }
}

/// Reads a file and returns the result, with the folder written as `CWD`.
fn read(dir: &TempDir, arguments: Value) -> String {
    let tool = tool(Arc::new(dir.workspace()));
    let result = call(tool.as_ref(), arguments);
    text(&result).replace(dir.path().to_str().unwrap(), "CWD")
}

#[test]
fn long_files_are_cut_with_a_notice() {
    let dir = TempDir::create();
    dir.write("lines", "line\n".repeat(2001));
    let answer = read(&dir, json!({"path": "lines"}));
    assert!(answer.ends_with("line\n\n[Showing lines 1-2000 of 2002. Use offset=2001 to continue.]"));
    dir.write("bytes", format!("{}\n", "x".repeat(63)).repeat(1000));
    let answer = read(&dir, json!({"path": "bytes", "offset": 11}));
    assert!(
        answer.ends_with("\n\n[Showing lines 11-810 of 1001 (50.0KB limit). Use offset=811 to continue.]")
    );
    dir.write("one line", format!("short\n{}", "x".repeat(70 * 1024)));
    assert_eq!(
        read(&dir, json!({"path": "one line", "offset": 2})),
        "[Line 2 is 70.0KB, exceeds 50.0KB limit. Use bash: sed -n '2p' 'one line' | head -c 51200]"
    );
    let tool = tool(Arc::new(dir.workspace()));
    let details = call(tool.as_ref(), json!({"path": "lines"})).unwrap().details.unwrap();
    assert_eq!(details["truncation"]["totalLines"], 2001);
    assert_eq!(details["truncation"]["truncatedBy"], "lines");
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let dir = TempDir::create();
    dir.write("folder/main.ts", "");
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    for (path, expected) in [
        (
            "folder/main.rs",
            "error: ENOENT: no such file or directory, access 'CWD/folder/main.rs'. Similar paths: folder/main.ts.",
        ),
        ("other", "error: ENOENT: no such file or directory, access 'CWD/other'"),
        (
            "folder",
            "error: EISDIR: illegal operation on a directory, read 'CWD/folder'. List a folder with bash (ls) or the ls tool.",
        ),
        (
            "folder/main.ts/x",
            "error: ENOTDIR: not a directory, access 'CWD/folder/main.ts/x'. Similar paths: folder/main.ts.",
        ),
        (
            "/dev/zero",
            "error: Cannot open '/dev/zero': it is a device, pipe or socket, not a regular file. Use bash for it, with a limit (head -c).",
        ),
        ("a\0b", "error: The path contains a NUL character, which no file name can have."),
    ] {
        let answer = read(&dir, json!({"path": path}));
        assert_eq!(answer.split(" Similar paths: dang").next().unwrap(), expected);
    }
    let answer = read(&dir, json!({"path": "x".repeat(5000)}));
    assert!(answer.starts_with("error: ENAMETOOLONG: name too long, access 'CWD/xxx"));
    assert_eq!(
        read(&dir, json!({"path": "folder/main.ts", "offset": 3})),
        "error: Offset 3 is beyond end of file (1 lines total)"
    );
}

#[test]
fn a_file_that_is_not_text_is_named() {
    let dir = TempDir::create();
    for (name, content, expected) in [
        (
            "a b.zip",
            &b"PK\x03\x04\0\0"[..],
            "[a b.zip is not text but a ZIP archive (or a document in one) (6B), so it is not shown. Use bash to look inside: unzip -l 'a b.zip', unzip -p 'a b.zip' NAME.]",
        ),
        (
            "x.pdf",
            b"%PDF-1.4 text",
            "[x.pdf is not text but a PDF document (13B), so it is not shown. Use bash to look inside: pdftotext x.pdf -.]",
        ),
        (
            "data",
            b"a\0b",
            "[data is not text but binary data (3B), so it is not shown. Use bash to look inside: file, xxd data | head or strings.]",
        ),
    ] {
        dir.write(name, content);
        assert_eq!(read(&dir, json!({"path": name})), expected);
    }
    // A file of 100 GB without content ends at once.
    let file = fs::File::create(dir.path().join("sparse")).unwrap();
    file.set_len(100 << 30).unwrap();
    let answer = read(&dir, json!({"path": "sparse", "offset": 1000}));
    assert!(answer.starts_with("[sparse is not text but binary data (102400.0MB)"), "{answer}");
}

#[test]
fn other_encodings_are_decoded_and_named() {
    let dir = TempDir::create();
    let utf16: Vec<u8> = "\u{feff}é\r\n漢\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    dir.write("utf16", utf16);
    dir.write("latin1", b"caf\xe9 \x93x\x94\n");
    dir.write("damaged", b"\xc3\xa9\xc3\xa9 \xff\n");
    dir.write("marked", "\u{feff}text\n");
    for (path, expected) in [
        (
            "utf16",
            "é\r\n漢\n\n\n[The file is encoded in UTF-16BE. It is shown decoded, and edit keeps the encoding; write would make it UTF-8.]",
        ),
        (
            "latin1",
            "café “x”\n\n\n[The file is encoded in Latin-1 (Windows-1252). It is shown decoded, and edit keeps the encoding; write would make it UTF-8.]",
        ),
        (
            "damaged",
            "éé \u{fffd}\n\n\n[Some bytes are not UTF-8 and are shown as \u{fffd}. Lines with them cannot be matched by edit.]",
        ),
        ("marked", "text\n"),
    ] {
        assert_eq!(read(&dir, json!({"path": path})), expected);
    }
}

#[test]
fn what_is_read_can_be_edited() {
    let dir = TempDir::create();
    let edit = crate::tools::edit::tool(Arc::new(dir.workspace()));
    let utf16: Vec<u8> = "\u{feff}é\r\nlast\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content, expected) in [
        (&b"\xef\xbb\xbffirst\nlast\n"[..], &b"\xef\xbb\xbfnew\nline\nlast\n"[..]),
        (b"a\r\nb\n", b"new\r\nline\r\nb\n"),
        (b"a\rb\r", b"new\rline\rb\r"),
        (b"no newline", b"new\nline"),
        (b"caf\xe9\nb\n", b"new\nline\nb\n"),
        (
            &utf16,
            &"\u{feff}new\r\nline\r\nlast\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
        ),
    ] {
        dir.write("f", content);
        let answer = read(&dir, json!({"path": "f"}));
        let line = answer.split(['\r', '\n']).next().unwrap();
        let arguments = json!({"path": "f", "oldText": line, "newText": "new\nline"});
        call(edit.as_ref(), arguments).unwrap();
        assert_eq!(dir.read("f"), expected, "{content:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_of_the_kernel_are_read() {
    let dir = TempDir::create();
    let answer = read(&dir, json!({"path": "/proc/self/status", "limit": 1}));
    assert!(answer.starts_with("Name:\t"), "{answer}");
}

#[test]
fn images_are_known_by_their_bytes() {
    // One red pixel.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";
    let dir = TempDir::create();
    dir.write("picture.txt", PNG);
    dir.write("page.png", "<html></html>");
    dir.write("cut.png", &PNG[..PNG.len() - 20]);
    dir.write("empty.png", "");
    assert_eq!(read(&dir, json!({"path": "page.png"})), "<html></html>");
    assert_eq!(read(&dir, json!({"path": "empty.png"})), "");
    assert_eq!(
        read(&dir, json!({"path": "cut.png"})),
        "Read image file [image/png]\n[Image omitted: this PNG file cannot be used, since it is cut short.]\n[Current model does not support images. The image will be omitted from this request.]"
    );
    let model = Model { input: vec!["text".into(), "image".into()], ..Model::default() };
    let tool = tool(Arc::new(dir.workspace()));
    let arguments = json!({"path": "picture.txt"});
    let output = call_with(tool.as_ref(), arguments, &CancelToken::new(), &model).unwrap();
    let [note, Block::Image(image)] = output.content.as_slice() else {
        panic!("{output:?}");
    };
    assert_eq!(note.as_text(), Some("Read image file [image/png]"));
    assert_eq!((image.mime_type.as_str(), image.data.get(..8)), ("image/png", Some("iVBORw0K")));
}

#[test]
fn an_aborted_call_reads_nothing() {
    let dir = TempDir::create();
    dir.write("f", "text");
    let cancel = CancelToken::new();
    cancel.cancel();
    let tool = tool(Arc::new(dir.workspace()));
    let result = call_with(tool.as_ref(), json!({"path": "f"}), &cancel, &Model::default());
    assert_eq!(text(&result), "error: Operation aborted");
}

#[test]
fn kept_outputs_are_opened_by_number() {
    let dir = TempDir::create();
    let outputs = dir.workspace().outputs;
    let missing = "error: There is no kept output \"1\" in this session. Run the command again.";
    assert_eq!(read(&dir, json!({"path": "artifact://1"})), missing);
    assert_eq!(artifact::store(&*outputs, "bash", b"1\n2\n3\n").unwrap(), 1);
    assert_eq!(read(&dir, json!({"path": "artifact://1"})), "1\n2\n3\n");
    let second = read(&dir, json!({"path": "artifact://1", "offset": 2, "limit": 1}));
    assert!(second.starts_with("2\n\n["), "{second}");
    artifact::store(&*outputs, "bash", &[b'x'; 60_000]).unwrap();
    // A shell knows the file only.
    let long = read(&dir, json!({"path": "artifact://2"}));
    assert!(long.contains("sed -n '1p' CWD/.outputs/pi-bash-"), "{long}");
    for odd in ["artifact://", "artifact://x", "artifact://-1", "artifact://../1"] {
        let answer = read(&dir, json!({"path": odd}));
        assert!(answer.starts_with("error: There is no kept output"), "{odd}: {answer}");
    }
}

#[test]
fn secrets_are_hidden_before_the_text_is_cut() {
    let dir = TempDir::create();
    let workspace = dir.workspace();
    workspace.vault.learn("K", "sk-0123456789");
    let tool = tool(Arc::new(workspace));
    let read = |arguments: Value| text(&call(&*tool, arguments));
    let content = "é\nkey: sk-0123456789\nend sk-01";
    let hidden = "é\nkey: ‹secret:K›\nend sk-01";
    for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Latin1] {
        let bytes = encoding.encode(content).unwrap();
        let mark: &[u8] = if encoding == Encoding::Utf16Le { &[0xff, 0xfe] } else { &[] };
        dir.write("f", [mark, &bytes].concat());
        let shown = read(json!({"path": "f"}));
        assert!(shown.starts_with(hidden), "{encoding:?}: {shown}");
        let line = read(json!({"path": "f", "offset": 2, "limit": 1}));
        assert!(line.starts_with("key: ‹secret:K›\n\n["), "{encoding:?}: {line}");
    }
    // Across the edge of what is read at once, and of what can be shown.
    for before in [CHUNK_BYTES, truncate::MAX_BYTES] {
        for at in before - 14..before + 2 {
            let filler = ("x".repeat(79) + "\n").repeat(at / 80) + &"y".repeat(at % 80);
            dir.write("f", filler + "sk-0123456789\nend");
            let shown = read(json!({"path": "f", "offset": at / 80 + 1}));
            assert!(shown.contains("‹secret:K›") && !shown.contains("sk-0123"), "{at}: {shown}");
        }
    }
}
