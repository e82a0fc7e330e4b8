//! Scales images in formats that are not decoded here, by an installed program.
//!
//! The program and its children are killed after ten seconds or on abort. Its exit status is ignored: its
//! output is checked like any other image. It runs outside of the project, whose files could be its
//! configuration, and in the sandbox if there is one.

use super::Kind;
use super::header::Size;
use crate::agent::CancelToken;
use crate::base::child::{self, End, Until, Wanted};
use crate::base::executable;
use crate::base::file::{self, Passing};
use crate::tools::process;
use crate::tools::sandbox::{Confinement, Sandbox};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TIME_LIMIT: Duration = Duration::from_secs(10);
const MAX_OUTPUT: usize = 64 << 20;

/// Suitable programs, best first.
const PROGRAMS: &[Program] = &[
    Program { name: "magick", arguments: imagemagick, files: false },
    Program { name: "sips", arguments: sips, files: true },
    Program { name: "ffmpeg", arguments: ffmpeg, files: false },
    // ImageMagick before version 7.
    Program { name: "convert", arguments: imagemagick, files: false },
];

struct Program {
    name: &'static str,
    arguments: fn(&Job<'_>) -> Vec<OsString>,
    /// True if the program needs files instead of pipes.
    files: bool,
}

struct Job<'a> {
    from: Kind,
    to: Kind,
    size: Size,
    input: &'a OsStr,
    output: &'a OsStr,
}

/// The image in the format `to`, no larger than `size`; `None` if no installed program supports it.
pub fn scale(
    image: &[u8],
    from: Kind,
    to: Kind,
    size: Size,
    sandbox: Option<&Sandbox>,
    cancel: &CancelToken,
) -> Option<Vec<u8>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    scale_with(&path, image, from, to, size, sandbox, cancel)
}

fn scale_with(
    path: &OsStr,
    image: &[u8],
    from: Kind,
    to: Kind,
    size: Size,
    sandbox: Option<&Sandbox>,
    cancel: &CancelToken,
) -> Option<Vec<u8>> {
    for program in PROGRAMS {
        if cancel.is_cancelled() {
            return None;
        }
        let Some(file) = executable::find_in(program.name, path) else {
            continue;
        };
        let job = Job { from, to, size, input: OsStr::new("-"), output: OsStr::new("-") };
        let result = if program.files {
            run_on_files(&file, program.arguments, &job, image, sandbox, cancel)
        } else {
            run(&file, &(program.arguments)(&job), image, sandbox, cancel)
        };
        // What it gave is an image of the kind asked for, or it gave nothing.
        if let Ok(output) = result
            && Kind::sniff(&output) == Some(to)
        {
            return Some(output);
        }
    }
    None
}

fn imagemagick(job: &Job<'_>) -> Vec<OsString> {
    // The format is named, since guessing it would also run formats that are scripts.
    let input = format!("{}:-[0]", job.from.name());
    let size = format!("{}x{}", job.size.width, job.size.height);
    let output = format!("{}:-", job.to.name());
    let arguments = [&input, "-auto-orient", "-resize", &size, "-quality", "80", &output];
    arguments.map(OsString::from).to_vec()
}

fn ffmpeg(job: &Job<'_>) -> Vec<OsString> {
    let input = format!("{}_pipe", job.from.name());
    let Size { width, height } = job.size;
    let filter = format!("scale={width}:{height}:force_original_aspect_ratio=decrease");
    let codec = match job.to {
        Kind::Jpeg => "mjpeg",
        _ => "png",
    };
    let arguments = [
        "-v",
        "quiet",
        "-nostdin",
        "-f",
        &input,
        "-i",
        "pipe:0",
        "-frames:v",
        "1",
        "-vf",
        &filter,
        "-c:v",
        codec,
        "-q:v",
        "4",
        "-f",
        "image2pipe",
        "pipe:1",
    ];
    arguments.map(OsString::from).to_vec()
}

fn sips(job: &Job<'_>) -> Vec<OsString> {
    let side = job.size.width.max(job.size.height).to_string();
    let mut arguments: Vec<OsString> = vec!["-s".into(), "format".into(), job.to.name().into()];
    if job.to == Kind::Jpeg {
        arguments.extend(["-s", "formatOptions", "80"].map(OsString::from));
    }
    arguments.extend(["-Z".into(), side.into(), job.input.into(), "--out".into()]);
    arguments.push(job.output.into());
    arguments
}

/// Runs a program on pipes, and returns its output.
fn run(
    program: &Path,
    arguments: &[OsString],
    input: &[u8],
    sandbox: Option<&Sandbox>,
    cancel: &CancelToken,
) -> io::Result<Vec<u8>> {
    let away = Path::new("/");
    let (mut command, _confinement) = match sandbox {
        None => (Command::new(program), Confinement::default()),
        Some(sandbox) => sandbox.command(program, away)?,
    };
    command.args(arguments).current_dir(away);
    process::set_apart(&mut command);
    let (read, until) = (Wanted::Output, Until::OutputEnd);
    let job = child::Job { input, read, until, limit: TIME_LIMIT, output_max: MAX_OUTPUT, cancel };
    let ran = child::run(command, &job)?;
    match ran.end {
        End::TooMuch => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(ran.output),
    }
}

/// Runs a program between two temporary files.
fn run_on_files(
    program: &Path,
    arguments: fn(&Job<'_>) -> Vec<OsString>,
    job: &Job<'_>,
    image: &[u8],
    sandbox: Option<&Sandbox>,
    cancel: &CancelToken,
) -> io::Result<Vec<u8>> {
    let (input, mut file) = Passing::file("image", job.from.name())?;
    file.write_all(image)?;
    drop(file);
    let (output, _) = Passing::file("image", job.to.name())?;
    let job = Job { input: input.path().as_os_str(), output: output.path().as_os_str(), ..*job };
    run(program, &arguments(&job), b"", sandbox, cancel)?;
    file::read(output.path(), MAX_OUTPUT as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;
    use std::fs;
    use std::io::Read;

    const GIF: &[u8] = b"GIF89a the picture";
    const SIZE: Size = Size { width: 20, height: 10 };

    /// A folder of shell scripts that act as programs.
    fn programs(scripts: &[(&str, &str)]) -> TempDir {
        let dir = TempDir::create();
        for (name, script) in scripts {
            let source =
                dir.write(&format!("{name}.source"), format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n"));
            // Copied by another process: a file that a fork of this one may hold open for writing
            // cannot be run.
            let copied =
                Command::new("install").args(["-m", "755"]).args([&source, &dir.path().join(name)]).status();
            assert!(copied.unwrap().success());
        }
        dir
    }

    fn scale_by(scripts: &[(&str, &str)]) -> Option<Vec<u8>> {
        let dir = programs(scripts);
        let path = dir.path().as_os_str();
        scale_with(path, b"input", Kind::Webp, Kind::Gif, SIZE, None, &CancelToken::new())
    }

    #[test]
    fn a_program_gets_the_image_and_its_answer_counts() {
        assert_eq!(
            scale_by(&[("magick", r#"printf 'GIF89a %s' "$*"; cat"#)]).unwrap(),
            b"GIF89a webp:-[0] -auto-orient -resize 20x10 -quality 80 gif:-input"
        );
        let both = [("sips", r#"printf 'GIF89a ' > "${9}"; cat "${7}" >> "${9}""#)];
        assert_eq!(scale_by(&both), None, "the arguments of sips are not where they should be");
        let sips = [(
            "sips",
            r#"[ "$*" = "-s format gif -Z 20 $6 --out $8" ]; printf 'GIF89a ' > "$8"; cat "$6" >> "$8""#,
        )];
        assert_eq!(scale_by(&sips).unwrap(), b"GIF89a input");
    }

    #[test]
    fn a_program_that_fails_is_passed_over() {
        assert_eq!(scale_by(&[]), None);
        assert_eq!(scale_by(&[("magick", "exit 1"), ("convert", "echo no image")]), None);
        let second = [("magick", "echo broken; exit 1"), ("convert", "printf 'GIF89a ok'")];
        assert_eq!(scale_by(&second).unwrap(), b"GIF89a ok");
        // It neither reads its input nor ends.
        let lingering = [("magick", "printf 'GIF89a ok'; exec >/dev/null; sleep 100")];
        assert_eq!(scale_by(&lingering).unwrap(), b"GIF89a ok");
    }

    #[test]
    fn a_program_runs_away_from_the_project() {
        let output = scale_by(&[("magick", r#"printf 'GIF89a %s' "$(pwd)""#)]);
        let output = String::from_utf8(output.unwrap()).unwrap();
        assert_eq!(output, "GIF89a /");
    }

    #[test]
    fn a_sandbox_holds_for_the_program() {
        use crate::tools::sandbox::{Mode, Policy};
        let outside = TempDir::create();
        let policy = Policy {
            mode: Mode::ReadOnly,
            cwd: outside.path().into(),
            writable: Vec::new(),
            network: false,
            terminal: false,
        };
        // Where nothing can be enforced, pi does not start with a sandbox.
        let Ok(sandbox) = Sandbox::new(policy) else {
            return;
        };
        let file = outside.path().join("file");
        let dir = programs(&[("magick", &format!("echo x > '{}'; printf GIF89a; cat", file.display()))]);
        let path = dir.path().as_os_str();
        let output =
            scale_with(path, b"input", Kind::Webp, Kind::Gif, SIZE, Some(&sandbox), &CancelToken::new());
        assert_eq!(output.unwrap(), b"GIF89ainput");
        assert!(!file.exists());
    }

    #[test]
    fn an_abort_kills_the_program_and_its_children() {
        // The pipe ends when the last process that holds it does.
        let script = r#"cd "${0%/*}"; mkfifo new; mv new alive; sleep 100 > alive & sleep 100"#;
        let dir = programs(&[("magick", script)]);
        let cancel = CancelToken::new();
        std::thread::scope(|scope| {
            let path = dir.path().as_os_str();
            let scaling = scope.spawn(|| scale_with(path, GIF, Kind::Gif, Kind::Gif, SIZE, None, &cancel));
            while !dir.path().join("alive").exists() {
                std::thread::yield_now();
            }
            let mut alive = fs::File::open(dir.path().join("alive")).unwrap();
            cancel.cancel();
            assert_eq!(scaling.join().unwrap(), None);
            assert_eq!(alive.read(&mut [0; 1]).unwrap(), 0);
        });
    }
}
