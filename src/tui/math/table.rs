//! Unicode forms of TeX commands.

#[rustfmt::skip]
pub(super) const DOUBLE: &[(char, char)] = &[
    ('C', 'ℂ'), ('E', '𝔼'), ('F', '𝔽'), ('H', 'ℍ'), ('N', 'ℕ'), ('P', 'ℙ'), ('Q', 'ℚ'), ('R', 'ℝ'),
    ('Z', 'ℤ'), ('D', '𝔻'), ('K', '𝕂'), ('1', '𝟙'),
];

#[rustfmt::skip]
pub(super) const ABOVE: &[(char, char)] = &[
    ('0', '⁰'), ('1', '¹'), ('2', '²'), ('3', '³'), ('4', '⁴'), ('5', '⁵'), ('6', '⁶'), ('7', '⁷'),
    ('8', '⁸'), ('9', '⁹'), ('+', '⁺'), ('−', '⁻'), ('=', '⁼'), ('(', '⁽'), (')', '⁾'), ('a', 'ᵃ'),
    ('b', 'ᵇ'), ('c', 'ᶜ'), ('d', 'ᵈ'), ('e', 'ᵉ'), ('f', 'ᶠ'), ('g', 'ᵍ'), ('h', 'ʰ'), ('i', 'ⁱ'),
    ('j', 'ʲ'), ('k', 'ᵏ'), ('l', 'ˡ'), ('m', 'ᵐ'), ('n', 'ⁿ'), ('o', 'ᵒ'), ('p', 'ᵖ'), ('r', 'ʳ'),
    ('s', 'ˢ'), ('t', 'ᵗ'), ('u', 'ᵘ'), ('v', 'ᵛ'), ('w', 'ʷ'), ('x', 'ˣ'), ('y', 'ʸ'), ('z', 'ᶻ'),
    ('T', 'ᵀ'), ('β', 'ᵝ'), ('γ', 'ᵞ'), ('θ', 'ᶿ'), ('∗', '*'), ('*', '*'), ('′', '′'), ('∘', '°'),
    ('†', '†'),
];

#[rustfmt::skip]
pub(super) const BELOW: &[(char, char)] = &[
    ('0', '₀'), ('1', '₁'), ('2', '₂'), ('3', '₃'), ('4', '₄'), ('5', '₅'), ('6', '₆'), ('7', '₇'),
    ('8', '₈'), ('9', '₉'), ('+', '₊'), ('−', '₋'), ('=', '₌'), ('(', '₍'), (')', '₎'), ('a', 'ₐ'),
    ('e', 'ₑ'), ('h', 'ₕ'), ('i', 'ᵢ'), ('j', 'ⱼ'), ('k', 'ₖ'), ('l', 'ₗ'), ('m', 'ₘ'), ('n', 'ₙ'),
    ('o', 'ₒ'), ('p', 'ₚ'), ('r', 'ᵣ'), ('s', 'ₛ'), ('t', 'ₜ'), ('u', 'ᵤ'), ('v', 'ᵥ'), ('x', 'ₓ'),
];

#[rustfmt::skip]
pub(super) const NEGATED: &[(char, char)] = &[
    ('=', '≠'), ('<', '≮'), ('>', '≯'), ('∈', '∉'), ('∋', '∌'), ('⊂', '⊄'), ('⊃', '⊅'), ('⊆', '⊈'),
    ('⊇', '⊉'), ('≤', '≰'), ('≥', '≱'), ('≡', '≢'), ('≈', '≉'), ('∼', '≁'), ('≅', '≇'), ('∃', '∄'),
    ('∣', '∤'), ('∥', '∦'), ('⊢', '⊬'), ('⊨', '⊭'), ('→', '↛'), ('⇒', '⇏'), ('⇔', '⇎'),
];

/// Marks that are written over or under a letter.
#[rustfmt::skip]
pub(super) const ACCENTS: &[(&str, char)] = &[
    ("hat", '\u{302}'), ("widehat", '\u{302}'), ("tilde", '\u{303}'), ("widetilde", '\u{303}'),
    ("bar", '\u{304}'), ("overline", '\u{305}'), ("underline", '\u{332}'), ("vec", '\u{20d7}'),
    ("overrightarrow", '\u{20d7}'), ("overleftarrow", '\u{20d6}'), ("dot", '\u{307}'), ("ddot", '\u{308}'),
    ("acute", '\u{301}'), ("grave", '\u{300}'), ("breve", '\u{306}'), ("check", '\u{30c}'),
    ("mathring", '\u{30a}'),
];

/// Names of functions.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[(&str, &str)] = &[
    ("sin", "sin"), ("cos", "cos"), ("tan", "tan"), ("cot", "cot"), ("sec", "sec"), ("csc", "csc"),
    ("arcsin", "arcsin"), ("arccos", "arccos"), ("arctan", "arctan"), ("sinh", "sinh"), ("cosh", "cosh"),
    ("tanh", "tanh"), ("coth", "coth"), ("log", "log"), ("ln", "ln"), ("lg", "lg"), ("exp", "exp"),
    ("lim", "lim"), ("limsup", "lim sup"), ("liminf", "lim inf"), ("max", "max"), ("min", "min"),
    ("sup", "sup"), ("inf", "inf"), ("argmax", "argmax"), ("argmin", "argmin"), ("arg", "arg"),
    ("det", "det"), ("dim", "dim"), ("ker", "ker"), ("deg", "deg"), ("gcd", "gcd"), ("hom", "hom"),
    ("Pr", "Pr"),
];

/// Functions whose script is a limit and not a part of the name.
pub(super) const LIMITS: &[&str] = &[
    "lim", "lim sup", "lim inf", "max", "min", "sup", "inf", "arg max", "arg min", "argmax", "argmin", "det",
    "gcd", "Pr",
];

/// Commands that only change the style of their argument.
#[rustfmt::skip]
pub(super) const PLAIN: &[&str] = &[
    "mathrm", "mathbf", "mathit", "mathsf", "mathtt", "mathcal", "mathscr", "mathfrak", "mathnormal",
    "boldsymbol", "bm", "pmb", "smash", "mathop", "mathrel", "mathbin", "mathord",
];

/// Commands without effect here.
#[rustfmt::skip]
pub(super) const IGNORED: &[&str] = &[
    "displaystyle", "textstyle", "scriptstyle", "scriptscriptstyle", "limits", "nolimits", "nonumber",
    "notag", "hline", "bf", "rm", "it", "sf", "tt", "cal",
];

/// Operators with limits.
#[rustfmt::skip]
pub(super) const BIG: &[(&str, &str)] = &[
    ("sum", "∑"), ("prod", "∏"), ("coprod", "∐"), ("int", "∫"), ("iint", "∬"), ("iiint", "∭"),
    ("oint", "∮"), ("bigcap", "⋂"), ("bigcup", "⋃"), ("bigvee", "⋁"), ("bigwedge", "⋀"),
    ("bigoplus", "⨁"), ("bigotimes", "⨂"), ("bigsqcup", "⨆"), ("biguplus", "⨄"),
];

/// Signs directly before their operand.
#[rustfmt::skip]
pub(super) const PREFIX: &[(&str, &str)] = &[
    ("partial", "∂"), ("nabla", "∇"), ("neg", "¬"), ("lnot", "¬"), ("lvert", "|"),
    ("lVert", "‖"),
];

/// Binary signs, with blanks around them.
#[rustfmt::skip]
pub(super) const BINARY: &[(&str, &str)] = &[
    ("pm", "±"), ("mp", "∓"), ("times", "×"), ("div", "÷"), ("cdot", "·"), ("ast", "∗"), ("star", "⋆"),
    ("circ", "∘"), ("bullet", "•"), ("oplus", "⊕"), ("ominus", "⊖"), ("otimes", "⊗"), ("oslash", "⊘"),
    ("odot", "⊙"), ("cap", "∩"), ("cup", "∪"), ("uplus", "⊎"), ("sqcap", "⊓"), ("sqcup", "⊔"),
    ("setminus", "∖"), ("land", "∧"), ("wedge", "∧"), ("lor", "∨"), ("vee", "∨"), ("ltimes", "⋉"),
    ("rtimes", "⋊"), ("wr", "≀"), ("bowtie", "⋈"), ("Join", "⋈"), ("amalg", "⨿"), ("bigcirc", "○"),
    ("leftouterjoin", "⟕"), ("rightouterjoin", "⟖"), ("fullouterjoin", "⟗"), ("triangleleft", "◁"),
    ("triangleright", "▷"),
];

/// Relations and arrows.
#[rustfmt::skip]
pub(super) const RELATIONS: &[(&str, &str)] = &[
    ("leq", "≤"), ("le", "≤"), ("leqslant", "≤"), ("geq", "≥"), ("ge", "≥"), ("geqslant", "≥"),
    ("neq", "≠"), ("ne", "≠"), ("equiv", "≡"), ("approx", "≈"), ("sim", "∼"), ("simeq", "≃"),
    ("cong", "≅"), ("asymp", "≍"), ("doteq", "≐"), ("propto", "∝"), ("ll", "≪"), ("gg", "≫"),
    ("lt", "<"), ("gt", ">"), ("in", "∈"), ("notin", "∉"), ("ni", "∋"), ("subset", "⊂"),
    ("subseteq", "⊆"), ("subsetneq", "⊊"), ("supset", "⊃"), ("supseteq", "⊇"), ("sqsubset", "⊏"),
    ("sqsubseteq", "⊑"), ("sqsupset", "⊐"), ("sqsupseteq", "⊒"), ("prec", "≺"), ("preceq", "≼"),
    ("succ", "≻"), ("succeq", "≽"), ("mid", "∣"), ("nmid", "∤"), ("parallel", "∥"), ("perp", "⊥"),
    ("vdash", "⊢"), ("dashv", "⊣"), ("models", "⊨"), ("vDash", "⊨"), ("Vdash", "⊩"), ("nvdash", "⊬"),
    ("nvDash", "⊭"), ("coloneqq", "≔"), ("triangleq", "≜"), ("to", "→"), ("rightarrow", "→"),
    ("leftarrow", "←"), ("gets", "←"), ("leftrightarrow", "↔"), ("Rightarrow", "⇒"), ("implies", "⟹"),
    ("Leftarrow", "⇐"), ("impliedby", "⟸"), ("Leftrightarrow", "⇔"), ("iff", "⟺"), ("mapsto", "↦"),
    ("longmapsto", "⟼"), ("longrightarrow", "⟶"), ("longleftarrow", "⟵"), ("Longrightarrow", "⟹"),
    ("Longleftarrow", "⟸"), ("longleftrightarrow", "⟷"), ("Longleftrightarrow", "⟺"),
    ("hookrightarrow", "↪"), ("hookleftarrow", "↩"), ("twoheadrightarrow", "↠"), ("rightharpoonup", "⇀"),
    ("rightharpoondown", "⇁"), ("leftharpoonup", "↼"), ("leftharpoondown", "↽"),
    ("rightleftharpoons", "⇌"), ("nearrow", "↗"), ("searrow", "↘"), ("swarrow", "↙"), ("nwarrow", "↖"),
    ("leadsto", "⇝"), ("rightsquigarrow", "⇝"), ("therefore", "∴"), ("because", "∵"),
];

#[rustfmt::skip]
pub(super) const SYMBOLS: &[(&str, &str)] = &[
    ("alpha", "α"), ("beta", "β"), ("gamma", "γ"), ("delta", "δ"), ("epsilon", "ϵ"), ("varepsilon", "ε"),
    ("zeta", "ζ"), ("eta", "η"), ("theta", "θ"), ("vartheta", "ϑ"), ("iota", "ι"), ("kappa", "κ"),
    ("varkappa", "ϰ"), ("lambda", "λ"), ("mu", "μ"), ("nu", "ν"), ("xi", "ξ"), ("pi", "π"),
    ("varpi", "ϖ"), ("rho", "ρ"), ("varrho", "ϱ"), ("sigma", "σ"), ("varsigma", "ς"), ("tau", "τ"),
    ("upsilon", "υ"), ("phi", "ϕ"), ("varphi", "φ"), ("chi", "χ"), ("psi", "ψ"), ("omega", "ω"),
    ("Gamma", "Γ"), ("Delta", "Δ"), ("Theta", "Θ"), ("Lambda", "Λ"), ("Xi", "Ξ"), ("Pi", "Π"),
    ("Sigma", "Σ"), ("Upsilon", "Υ"), ("Phi", "Φ"), ("Psi", "Ψ"), ("Omega", "Ω"), ("emptyset", "∅"),
    ("varnothing", "∅"), ("forall", "∀"), ("exists", "∃"), ("nexists", "∄"), ("top", "⊤"), ("bot", "⊥"),
    ("infty", "∞"), ("angle", "∠"), ("triangle", "△"), ("square", "□"), ("Box", "□"), ("blacksquare", "■"),
    ("lozenge", "◊"), ("checkmark", "✓"), ("complement", "∁"), ("degree", "°"), ("prime", "′"),
    ("dagger", "†"), ("ddagger", "‡"), ("ell", "ℓ"), ("hbar", "ℏ"), ("wp", "℘"), ("Re", "ℜ"), ("Im", "ℑ"),
    ("aleph", "ℵ"), ("beth", "ℶ"), ("imath", "ı"), ("jmath", "ȷ"), ("surd", "√"), ("uparrow", "↑"),
    ("downarrow", "↓"), ("ldots", "…"), ("dots", "…"), ("dotsc", "…"), ("dotsb", "⋯"), ("cdots", "⋯"),
    ("vdots", "⋮"), ("ddots", "⋱"), ("langle", "⟨"), ("rangle", "⟩"), ("lfloor", "⌊"), ("rfloor", "⌋"),
    ("lceil", "⌈"), ("rceil", "⌉"), ("vert", "|"), ("rvert", "|"), ("Vert", "‖"),
    ("rVert", "‖"), ("lbrace", "{"), ("rbrace", "}"), ("lbrack", "["), ("rbrack", "]"),
    ("backslash", "\\"), ("colon", ":"), ("And", "&"), ("qed", "∎"),
];
