//! Finds the end of a JSON object or array without parsing it, in linear time.

/// Counts brackets outside strings.
#[derive(Debug, Default)]
pub struct Balance {
    depth: usize,
    in_string: bool,
    escaped: bool,
    complete: bool,
}

impl Balance {
    /// Reads the next piece. If the value ends in the piece, returns the position after its end.
    pub fn feed(&mut self, piece: &str) -> Option<usize> {
        if self.complete {
            return None;
        }
        for (at, byte) in piece.bytes().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.complete = true;
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// True after the end of the value.
    pub fn is_complete(&self) -> bool {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_the_text_is_cut() {
        let cases = [
            (r#"{"a":"}\"{","b":[{}]} x"#, Some(21)),
            ("  {} {}", Some(4)),
            ("[1,{\"é\":\"]\"}]", Some(14)),
            ("{\"a\":1", None),
            ("", None),
            ("}", Some(1)),
        ];
        for (text, expected) in cases {
            for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
                let (head, tail) = text.split_at(cut);
                let mut balance = Balance::default();
                let first = balance.feed(head);
                let second = balance.feed(tail).map(|at| at + cut);
                assert_eq!(first.or(second), expected, "{text} cut at {cut}");
                assert_eq!(balance.is_complete(), expected.is_some());
            }
        }
    }
}
