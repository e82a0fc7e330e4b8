//! Formulas in TeX between dollars, as the characters that there are for them.
//!
//! A dollar begins a formula as in Pandoc: something stands directly behind it, and the dollar that ends it has
//! something directly before it and no letter or digit behind. A formula with a command that is not known
//! here stays as it was written.

use std::borrow::Cow;

/// Longer ones are none.
const BYTES_MAX: usize = 600;
/// Groups inside each other.
const DEPTH_MAX: usize = 20;

/// The text with its formulas written out.
pub fn shown(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    let mut before = None;
    while let Some(at) = rest.find('$') {
        let (head, tail) = rest.split_at(at);
        let before_dollar = head.chars().next_back().or(before);
        let found = match before_dollar {
            Some(letter) if letter.is_alphanumeric() || letter == '\\' => None,
            _ => find(tail),
        };
        let formula = found.and_then(|(tex, len)| Some((formula(tex)?, len)));
        out.push_str(head);
        match formula {
            Some((formula, len)) => {
                out.push_str(&formula);
                rest = tail.get(len..).unwrap_or_default();
            }
            None => {
                out.push('$');
                rest = tail.get(1..).unwrap_or_default();
            }
        }
        before = Some('$');
    }
    if out.is_empty() {
        return text.into();
    }
    out.push_str(rest);
    out.into()
}

/// The formula that `text` begins with, and its bytes with the dollars.
fn find(text: &str) -> Option<(&str, usize)> {
    let marks = if text.starts_with("$$") { "$$" } else { "$" };
    let inside = text.get(marks.len()..)?;
    let end = inside.find(marks)?;
    let tex = inside.get(..end)?;
    let after = inside.get(end + marks.len()..)?.chars().next();
    let is_tight = !tex.starts_with(char::is_whitespace) && !tex.ends_with(char::is_whitespace);
    let ends = after.is_none_or(|letter| !letter.is_alphanumeric() && letter != '$');
    let is_formula = !tex.is_empty() && tex.len() <= BYTES_MAX && ends && (is_tight || marks.len() == 2);
    is_formula.then_some((tex, end + 2 * marks.len()))
}

fn formula(tex: &str) -> Option<String> {
    let mut reader = Reader { rest: tex.trim(), depth: 0 };
    let out = reader.group(false)?;
    reader.rest.is_empty().then_some(out)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        Some(letter)
    }

    /// Up to the end, or the brace that ends a group.
    fn group(&mut self, is_braced: bool) -> Option<String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut out = String::new();
        loop {
            if self.rest.is_empty() {
                break;
            }
            if self.rest.starts_with('}') {
                break;
            }
            match self.rest.chars().next()? {
                mark @ ('^' | '_') => {
                    self.next();
                    let text = self.argument()?;
                    out.push_str(&raised(&text, mark));
                }
                _ => out.push_str(&self.atom()?),
            }
        }
        self.depth -= 1;
        if is_braced && self.next() != Some('}') {
            return None;
        }
        Some(out)
    }

    /// What a command or a mark is about: a group, or the next thing.
    fn argument(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        self.atom()
    }

    fn atom(&mut self) -> Option<String> {
        match self.next()? {
            '{' => self.group(true),
            '\\' => self.command(),
            '-' => Some("−".to_owned()),
            '~' => Some(" ".to_owned()),
            '\'' => Some("′".to_owned()),
            '&' | '}' => None,
            letter => Some(letter.to_string()),
        }
    }

    fn command(&mut self) -> Option<String> {
        let end = self.rest.find(|letter: char| !letter.is_ascii_alphabetic());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Some(match self.next()? {
                ',' | ';' | ':' | ' ' => " ".to_owned(),
                '!' => String::new(),
                mark @ ('{' | '}' | '$' | '%' | '#' | '&' | '_' | '|') => mark.to_string(),
                _ => return None,
            });
        }
        self.rest = rest;
        let words = match name {
            "frac" | "dfrac" | "tfrac" => {
                let (above, below) = (self.argument()?, self.argument()?);
                return Some(format!("{}/{}", whole(&above), whole(&below)));
            }
            "sqrt" => return Some(format!("√{}", whole(&self.argument()?))),
            "text" | "mathrm" | "mathbf" | "mathit" | "mathsf" | "mathcal" | "operatorname"
            | "boldsymbol" => return self.argument(),
            "mathbb" => {
                let letters = self.argument()?;
                return Some(letters.chars().map(|letter| pick(DOUBLE, letter)).collect());
            }
            "hat" | "bar" | "vec" | "tilde" | "dot" | "overline" => {
                let mark = match name {
                    "hat" => '\u{302}',
                    "vec" => '\u{20d7}',
                    "tilde" => '\u{303}',
                    "dot" => '\u{307}',
                    _ => '\u{304}',
                };
                let text = self.argument()?;
                return Some(text.chars().flat_map(|letter| [letter, mark]).collect());
            }
            "left" | "right" | "big" | "Big" | "displaystyle" | "limits" => "",
            "quad" | "qquad" => "  ",
            name => SYMBOLS.iter().find(|(known, _)| *known == name)?.1,
        };
        Some(words.to_owned())
    }
}

/// With parentheses where it is more than one thing.
fn whole(text: &str) -> String {
    match text.chars().all(char::is_alphanumeric) {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

fn raised(text: &str, mark: char) -> String {
    let table = if mark == '^' { ABOVE } else { BELOW };
    let find = |letter: char| {
        let (_, small) = table.iter().find(|(known, _)| *known == letter)?;
        Some(*small)
    };
    let small: Option<String> = text.chars().map(find).collect();
    small.unwrap_or_else(|| match text.chars().count() {
        1 => format!("{mark}{text}"),
        _ => format!("{mark}({text})"),
    })
}

fn pick(table: &[(char, char)], letter: char) -> char {
    let found = table.iter().find(|(known, _)| *known == letter);
    found.map_or(letter, |(_, other)| *other)
}

#[rustfmt::skip]
const DOUBLE: &[(char, char)] = &[
    ('C', 'ℂ'), ('E', '𝔼'), ('F', '𝔽'), ('H', 'ℍ'), ('N', 'ℕ'), ('P', 'ℙ'), ('Q', 'ℚ'), ('R', 'ℝ'),
    ('Z', 'ℤ'), ('1', '𝟙'),
];

#[rustfmt::skip]
const ABOVE: &[(char, char)] = &[
    ('0', '⁰'), ('1', '¹'), ('2', '²'), ('3', '³'), ('4', '⁴'), ('5', '⁵'), ('6', '⁶'), ('7', '⁷'),
    ('8', '⁸'), ('9', '⁹'), ('+', '⁺'), ('−', '⁻'), ('=', '⁼'), ('(', '⁽'), (')', '⁾'), ('a', 'ᵃ'),
    ('b', 'ᵇ'), ('c', 'ᶜ'), ('d', 'ᵈ'), ('e', 'ᵉ'), ('f', 'ᶠ'), ('g', 'ᵍ'), ('h', 'ʰ'), ('i', 'ⁱ'),
    ('j', 'ʲ'), ('k', 'ᵏ'), ('l', 'ˡ'), ('m', 'ᵐ'), ('n', 'ⁿ'), ('o', 'ᵒ'), ('p', 'ᵖ'), ('r', 'ʳ'),
    ('s', 'ˢ'), ('t', 'ᵗ'), ('u', 'ᵘ'), ('v', 'ᵛ'), ('w', 'ʷ'), ('x', 'ˣ'), ('y', 'ʸ'), ('z', 'ᶻ'),
    ('T', 'ᵀ'), ('β', 'ᵝ'), ('γ', 'ᵞ'), ('θ', 'ᶿ'), ('∗', '*'), ('*', '*'), ('′', '′'), ('∘', '°'),
    ('†', '†'),
];

#[rustfmt::skip]
const BELOW: &[(char, char)] = &[
    ('0', '₀'), ('1', '₁'), ('2', '₂'), ('3', '₃'), ('4', '₄'), ('5', '₅'), ('6', '₆'), ('7', '₇'),
    ('8', '₈'), ('9', '₉'), ('+', '₊'), ('−', '₋'), ('=', '₌'), ('(', '₍'), (')', '₎'), ('a', 'ₐ'),
    ('e', 'ₑ'), ('h', 'ₕ'), ('i', 'ᵢ'), ('j', 'ⱼ'), ('k', 'ₖ'), ('l', 'ₗ'), ('m', 'ₘ'), ('n', 'ₙ'),
    ('o', 'ₒ'), ('p', 'ₚ'), ('r', 'ᵣ'), ('s', 'ₛ'), ('t', 'ₜ'), ('u', 'ᵤ'), ('v', 'ᵥ'), ('x', 'ₓ'),
];

#[rustfmt::skip]
const SYMBOLS: &[(&str, &str)] = &[
    ("alpha", "α"), ("beta", "β"), ("gamma", "γ"), ("delta", "δ"), ("epsilon", "ϵ"), ("varepsilon", "ε"),
    ("zeta", "ζ"), ("eta", "η"), ("theta", "θ"), ("vartheta", "ϑ"), ("iota", "ι"), ("kappa", "κ"),
    ("lambda", "λ"), ("mu", "μ"), ("nu", "ν"), ("xi", "ξ"), ("pi", "π"), ("rho", "ρ"), ("sigma", "σ"),
    ("varsigma", "ς"), ("tau", "τ"), ("upsilon", "υ"), ("phi", "ϕ"), ("varphi", "φ"), ("chi", "χ"),
    ("psi", "ψ"), ("omega", "ω"), ("Gamma", "Γ"), ("Delta", "Δ"), ("Theta", "Θ"), ("Lambda", "Λ"),
    ("Xi", "Ξ"), ("Pi", "Π"), ("Sigma", "Σ"), ("Upsilon", "Υ"), ("Phi", "Φ"), ("Psi", "Ψ"), ("Omega", "Ω"),
    ("pm", "±"), ("mp", "∓"), ("times", "×"), ("div", "÷"), ("cdot", "·"), ("ast", "∗"), ("star", "⋆"),
    ("circ", "∘"), ("bullet", "•"), ("oplus", "⊕"), ("otimes", "⊗"), ("cap", "∩"), ("cup", "∪"),
    ("setminus", "∖"), ("land", "∧"), ("wedge", "∧"), ("lor", "∨"), ("vee", "∨"), ("lnot", "¬"), ("neg", "¬"),
    ("leq", "≤"), ("le", "≤"), ("geq", "≥"), ("ge", "≥"), ("neq", "≠"), ("ne", "≠"), ("equiv", "≡"),
    ("approx", "≈"), ("sim", "∼"), ("simeq", "≃"), ("cong", "≅"), ("propto", "∝"), ("ll", "≪"), ("gg", "≫"),
    ("in", "∈"), ("notin", "∉"), ("ni", "∋"), ("subset", "⊂"), ("subseteq", "⊆"), ("supset", "⊃"),
    ("supseteq", "⊇"), ("emptyset", "∅"), ("varnothing", "∅"), ("forall", "∀"), ("exists", "∃"),
    ("nexists", "∄"), ("therefore", "∴"), ("because", "∵"), ("mid", "∣"), ("parallel", "∥"), ("perp", "⊥"),
    ("top", "⊤"), ("bot", "⊥"), ("vdash", "⊢"), ("models", "⊨"), ("sum", "∑"), ("prod", "∏"), ("int", "∫"),
    ("iint", "∬"), ("oint", "∮"), ("partial", "∂"), ("nabla", "∇"), ("infty", "∞"), ("angle", "∠"),
    ("degree", "°"), ("prime", "′"), ("dagger", "†"), ("ell", "ℓ"), ("hbar", "ℏ"), ("Re", "ℜ"), ("Im", "ℑ"),
    ("aleph", "ℵ"), ("to", "→"), ("rightarrow", "→"), ("leftarrow", "←"), ("gets", "←"), ("uparrow", "↑"),
    ("downarrow", "↓"), ("leftrightarrow", "↔"), ("Rightarrow", "⇒"), ("implies", "⟹"), ("Leftarrow", "⇐"),
    ("Leftrightarrow", "⇔"), ("iff", "⟺"), ("mapsto", "↦"), ("longrightarrow", "⟶"), ("hookrightarrow", "↪"),
    ("ldots", "…"), ("dots", "…"), ("cdots", "⋯"), ("vdots", "⋮"), ("ddots", "⋱"), ("langle", "⟨"),
    ("rangle", "⟩"), ("lfloor", "⌊"), ("rfloor", "⌋"), ("lceil", "⌈"), ("rceil", "⌉"), ("vert", "|"),
    ("Vert", "‖"), ("lbrace", "{"), ("rbrace", "}"), ("backslash", "\\"), ("sin", "sin"), ("cos", "cos"),
    ("tan", "tan"), ("log", "log"), ("ln", "ln"), ("exp", "exp"), ("min", "min"), ("max", "max"),
    ("lim", "lim"), ("sup", "sup"), ("inf", "inf"), ("det", "det"), ("dim", "dim"), ("ker", "ker"),
    ("gcd", "gcd"), ("arg", "arg"), ("Pr", "Pr"), ("bmod", "mod"), ("mod", "mod"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_are_written_out() {
        for (text, expected) in [
            ("$\\alpha^2$", "α²"),
            ("so $x_1 + x_{12} \\leq y^{n+1}$.", "so x₁ + x₁₂ ≤ yⁿ⁺¹."),
            ("$E = mc^2$", "E = mc²"),
            ("$$\\sum_{i=1}^n \\frac{1}{i^2} = \\frac{\\pi^2}{6}$$", "∑ᵢ₌₁ⁿ 1/i² = π²/6"),
            ("$\\sqrt{2}$ and $\\sqrt{a+b}$", "√2 and √(a+b)"),
            ("$f: \\mathbb{R} \\to \\mathbb{R}$", "f: ℝ → ℝ"),
            ("$O(n \\log n)$", "O(n log n)"),
            ("$x^{Q}$", "x^Q"),
            ("$\\text{if } a$", "if  a"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_formula_stays() {
        for text in [
            "no dollars",
            "$5 and $10",
            "it costs $5-$10",
            "export PATH=$HOME/bin:$PATH",
            "$A$B",
            "\"$a\",\"$b\"",
            "$ x $",
            "$",
            "$$",
            "$\\unknown{x}$",
            "$\\frac{1}$",
            "$a}b$",
            "US$5 or 6$",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[$a1 \\\\{}^_é,-]{0,40}", word in "\\PC{0,20}") {
            shown(&text);
            shown(&format!("${word}$"));
            shown(&format!("$\\frac{{{text}}}{{{word}}}$"));
        }
    }
}
