//! Images that a prompt names by their paths, as people type, paste or drop them into a terminal.

use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::llm::message::Block;
use crate::runtime::control::Control;
use crate::tools::image::{self, Kind, Limits};
use crate::tools::path;

/// Images of one prompt.
const IMAGES_MAX: usize = 10;

/// Maximum size of a file.
const BYTES_MAX: u64 = 100 << 20;

const EXTENSIONS: [&str; 6] = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"];

/// Returns the words of a prompt that look like paths of images, without quotes and escapes.
pub fn names(text: &str) -> Vec<String> {
    let is_image = |word: &String| {
        let lower = word.to_lowercase();
        EXTENSIONS.iter().any(|extension| lower.ends_with(extension) && lower.len() > extension.len())
    };
    let mut names: Vec<String> = Vec::new();
    for word in words(text) {
        let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
        let word = word.trim_start_matches(['(', '[']).to_owned();
        if is_image(&word) && !names.contains(&word) {
            names.push(word);
        }
    }
    names.truncate(IMAGES_MAX);
    names
}

/// The words of a text. A word in quotes, and one with escaped blanks, are as terminals insert paths of dropped files.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_begin = words.last().is_none_or(|word| word.is_empty() || word == "@");
        let mut push = |letter| words.last_mut().into_iter().for_each(|word: &mut String| word.push(letter));
        match (letter, quote) {
            ('\n', _) => {
                quote = None;
                words.push(String::new());
            }
            (_, Some(end)) if letter == end => {
                quote = None;
                words.push(String::new());
            }
            (_, Some(_)) => push(letter),
            // An apostrophe inside a word is none that begins a quotation.
            ('\'' | '"', None) if is_begin => quote = Some(letter),
            ('\\', None) if letters.peek().is_some_and(|next| " '\"()&[]\\".contains(*next)) => {
                letters.next().into_iter().for_each(push);
            }
            (letter, None) if letter.is_whitespace() => words.push(String::new()),
            (letter, None) => push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

impl Control {
    /// Reads the images that a prompt names, as the model can take them. Also returns a line for each image that is
    /// left out. A name without a file is no image; without a model that takes images there is none.
    pub fn images_named(&self, text: &str, cancel: &CancelToken) -> (Vec<Block>, Vec<String>) {
        let (mut images, mut problems) = (Vec::new(), Vec::new());
        let model = self.models().current();
        if !model.takes_images() {
            return (images, problems);
        }
        let workspace = self.config().workspace.clone();
        let limits = Limits::of(&model, workspace.options.resize_images);
        for name in names(text) {
            let Ok(path) = path::resolve_existing(&workspace, &name) else { continue };
            if !path.is_file() {
                continue;
            }
            let read = file::read(&path, BYTES_MAX).map_err(|error| error.to_string());
            let prepared = read.and_then(|bytes| {
                let kind = Kind::sniff(&bytes).ok_or("it holds no image")?;
                image::prepare(&bytes, kind, &limits, workspace.backend.sandbox(), cancel)
            });
            match prepared {
                Ok(prepared) => images.push(Block::image(prepared.data, prepared.mime_type)),
                Err(why) => problems.push(format!("{name} is not attached: {why}")),
            }
        }
        (images, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_as_terminals_insert_them() {
        for (text, expected) in [
            ("look at shot.png", &["shot.png"][..]),
            ("@shot.PNG, and (b/c.jpeg).", &["shot.PNG", "b/c.jpeg"]),
            ("'/tmp/my shot.png' \"x y.webp\"", &["/tmp/my shot.png", "x y.webp"]),
            (r"/tmp/my\ shot\ \(1\).png what is it?", &["/tmp/my shot (1).png"]),
            ("file:///tmp/a%20b.gif", &["file:///tmp/a%20b.gif"]),
            ("a.png a.png", &["a.png"]),
            ("it's a.png and that's b.png", &["a.png", "b.png"]),
            ("@'my shot.png'", &["my shot.png"]),
            (".png png a.pngx", &[]),
            ("'open a.png\nb.png", &["open a.png", "b.png"]),
        ] {
            let found: Vec<String> =
                names(text).iter().map(|name| name.trim_start_matches('@').to_owned()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
