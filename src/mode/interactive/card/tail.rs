//! The end of a command's output, in bounded memory.

/// Minimum bytes kept of a longer output.
const KEPT_BYTES: usize = 128 * 1024;

#[derive(Clone, Debug, Default)]
pub struct Tail {
    text: String,
    /// Lines that were dropped.
    lost: usize,
}

impl Tail {
    pub fn push(&mut self, text: &str) {
        let start = text.len().saturating_sub(2 * KEPT_BYTES);
        if start > 0 {
            // Nothing of what came before is in the end of this.
            self.lost += lines(&self.text);
            self.text.clear();
        }
        self.text.push_str(text);
        if self.text.len() > 2 * KEPT_BYTES {
            let mut cut = self.text.len() - KEPT_BYTES;
            while !self.text.is_char_boundary(cut) {
                cut += 1;
            }
            let rest = self.text.as_bytes().get(cut..).unwrap_or_default();
            cut += memchr::memchr(b'\n', rest).map_or(0, |at| at + 1);
            self.lost += lines(self.text.get(..cut).unwrap_or_default());
            self.text.drain(..cut);
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Lines that were dropped before the text.
    pub fn lost(&self) -> usize {
        self.lost
    }
}

fn lines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_held_and_the_lines_before_it_are_counted() {
        for piece in [7, 8192, 600_000] {
            let mut tail = Tail::default();
            let whole: String = (0..100_000).map(|line| format!("{line}\n")).collect();
            for at in (0..whole.len()).step_by(piece) {
                tail.push(&whole[at..(at + piece).min(whole.len())]);
                assert!(tail.text.len() <= 2 * KEPT_BYTES);
            }
            assert!(whole.ends_with(tail.text()) && tail.text().len() >= KEPT_BYTES - 8);
            assert!(tail.text().starts_with(&format!("{}\n", tail.lost())));
        }
    }

    #[test]
    fn a_character_is_never_cut() {
        let mut tail = Tail::default();
        for _ in 0..200_000 {
            tail.push("é日");
        }
        assert!(tail.text().len() >= KEPT_BYTES);
    }
}
